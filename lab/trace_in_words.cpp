// Lists the buckets and why each was closed, then the events of the last iteration in order of time.
#include <brigade/lab/trace_file.h>

#include <brigade/dist/errors/verdict.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <vector>

namespace brigade::lab {
namespace {

using nlohmann::json;

struct Moment {
  double time;
  std::string words;
};

// Adds a bucket's collective, or one of its two phases, which not every process group can tell apart.
void add_collective(const TraceSlice& slice, std::vector<Moment>& moments) {
  const json& details = *slice.arguments;
  const double length = slice.end - slice.begin;
  if (slice.name == "wait for peers") {
    moments.push_back({slice.end, fmt::format("all ranks have launched bucket {}, {:.1f} us after this one",
                                              details.at("bucket").get<int>(), length)});
  } else if (slice.name == "reduce") {
    moments.push_back(
        {slice.end, fmt::format("bucket {} is averaged in {:.1f} us: {:.2f} GB/s of algorithm bandwidth, "
                                "{:.2f} GB/s on the bus",
                                details.at("bucket").get<int>(), length, details.at("algbw_GBps").get<double>(),
                                details.at("busbw_GBps").get<double>())});
  } else {
    // After the gradient that filled it.
    moments.push_back({details.at("filled_us").get<double>() + 1e-3, fmt::format("{} is full", slice.name)});
    moments.push_back({slice.begin, fmt::format("{} is launched: {} of payload (gradients, flags, words)", slice.name,
                                                dist::bytes_in_words(details.at("bytes").get<int64_t>()))});
    if (details.at("on_device").get<bool>()) return;
    moments.push_back({slice.end, details.at("arrival_known").get<bool>()
                                      ? fmt::format("{} is seen to be averaged", slice.name)
                                      : fmt::format("{} is averaged {:.1f} us after its launch; how much of that was "
                                                    "waiting for peers is not known, so there is no bandwidth",
                                                    slice.name, length)});
  }
}

}  // namespace

std::string trace_in_words(const Trace& trace) {
  const json& facts = trace.facts;
  const json& parameters = facts.at("parameters");
  const auto name_of = [&](const json& index) {
    return parameters.at(index.get<size_t>()).at("name").get<std::string>();
  };
  std::string text = fmt::format("{} on {} ranks over {}: {} parameters in {} buckets\n",
                                 facts.at("module").get<std::string>(), facts.at("ranks").get<int>(),
                                 facts.at("backend").get<std::string>(), parameters.size(), facts.at("buckets").size());
  const int64_t first = facts.at("first_bucket_bytes");
  const int64_t cap = facts.at("bucket_cap_bytes");
  text += fmt::format(
      "\nBuckets. {} A bucket of a dtype is closed when its gradients reach its cap: {} for the first, so that "
      "communication starts early, {} for the others. A parameter is never split.\n",
      facts.at("rebuilt").get<bool>()
          ? "They were rebuilt after the first backward, in the order in which rank 0's gradients became ready."
          : "They stand in reverse order of registration, since the last layers finish first in backward; they are rebuilt "
            "after the first backward.",
      dist::bytes_in_words(first), dist::bytes_in_words(cap));
  size_t number = 0;
  for (const json& bucket : facts.at("buckets")) {
    int64_t total = 0;
    for (const json& index : bucket.at("parameters"))
      total += parameters.at(index.get<size_t>()).at("bytes").get<int64_t>();
    const int64_t limit = number == 0 ? first : cap;
    text += fmt::format("  bucket {} ({}, {}): {}\n", number, bucket.at("dtype").get<std::string>(),
                        dist::bytes_in_words(total),
                        total >= limit ? fmt::format("closed at its cap of {}", dist::bytes_in_words(limit))
                                       : std::string("closed because no parameter was left"));
    for (const json& index : bucket.at("parameters"))
      text += fmt::format("    {} ({})\n", name_of(index),
                          dist::bytes_in_words(parameters.at(index.get<size_t>()).at("bytes").get<int64_t>()));
    ++number;
  }
  text += "\nReady order of the last backward on rank 0:";
  for (const json& index : facts.at("ready_order"))
    text += " " + name_of(index);
  text += "\n";
  const json& users = facts.at("users");
  for (size_t i = 0; i < users.size(); ++i) {
    if (users[i].get<int>() != facts.at("ranks").get<int>())
      text += fmt::format("  {} was used on {} of {} ranks, and divided by {}\n", name_of(json(i)), users[i].get<int>(),
                          facts.at("ranks").get<int>(), facts.at("ranks").get<int>());
  }

  // The last iteration of rank 0, event by event.
  int64_t last = 0;
  for (const TraceSlice& slice : trace.slices) {
    if (slice.name == "backward") last = std::max(last, slice.arguments->at("iteration").get<int64_t>());
  }
  std::vector<Moment> moments;
  double begin = -1;
  for (const TraceSlice& slice : trace.slices) {
    if (slice.rank != 0 || slice.arguments->value("iteration", int64_t{0}) != last) continue;
    const std::string& name = slice.name;
    const json& details = *slice.arguments;
    if (slice.instant && details.contains("optimizer")) {
      moments.push_back(
          {slice.begin, fmt::format("{} at {}{}", name, details.at("where").get<std::string>(),
                                    details.contains("loss_scale")
                                        ? fmt::format(", loss scale {:g}", details.at("loss_scale").get<double>())
                                        : "")});
    } else if (slice.instant) {
      moments.push_back({slice.begin, fmt::format("gradient of {} is ready", name)});
    } else if (slice.category == "collective") {
      add_collective(slice, moments);
    } else if (slice.category == "collective on a device") {
      moments.push_back({slice.end, fmt::format("bucket {} is averaged on the device, {:.1f} us after its turn came "
                                                "(peers that came later included): {:.2f} GB/s on the bus",
                                                details.at("bucket").get<int>(), slice.end - slice.begin,
                                                details.at("busbw_GBps").get<double>())});
    } else if (name == "backward on the device") {
      moments.push_back({slice.end, "the device has run all nodes"});
    } else if (name == "forward") {
      moments.push_back({slice.begin, "forward begins"});
    } else if (name == "backward") {
      begin = slice.begin;
      moments.push_back({slice.begin, fmt::format("backward at {} begins: the plan is known, and with it who will be "
                                                  "reached",
                                                  details.at("backward").get<std::string>())});
    } else {
      moments.push_back({slice.begin, "all nodes have run; what is in flight is waited for"});
      moments.push_back({slice.end, fmt::format("gradients are final; {:.0f} % of the communication was hidden behind "
                                                "backward",
                                                100 * details.at("overlap").get<double>())});
    }
  }
  std::stable_sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) { return a.time < b.time; });
  text += fmt::format("\nIteration {} on rank 0 (microseconds from the start of backward):\n", last);
  for (const Moment& moment : moments)
    text += fmt::format("  {:>9.1f}  {}\n", moment.time - begin, moment.words);
  return text;
}

}  // namespace brigade::lab
