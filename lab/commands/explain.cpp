// brigade explain: the bucket layout, the ready order and one iteration, in words; of a recipe, or from a trace file.
#include <brigade/autograd/functional.h>
#include <brigade/dist/distributed_data_parallel.h>
#include <brigade/dist/trace.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/commands/commands.h>
#include <brigade/lab/json_output.h>
#include <brigade/lab/options.h>
#include <brigade/lab/rank_job.h>
#include <brigade/lab/recipes/digits.h>
#include <brigade/lab/results.h>
#include <brigade/lab/trace_slices.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

namespace brigade::lab {

namespace {

using nlohmann::json;

// A few steps of the recipe's model on made-up images; the trace of the last ones.
std::string explain_job(const dist::ProcessGroupPtr& group, const std::string& arguments) {
  const json given = json::parse(arguments);
  manual_seed(1);
  DigitsNet net;
  dist::DDPOptions options;
  options.bucket_cap_mb = given.at("bucket_mb");
  options.first_bucket_mb = std::min(1.0, options.bucket_cap_mb);
  dist::DistributedDataParallel<DigitsNet> ddp(net, group, options);
  ddp.reducer().timeline().keep(2);
  optim::SGD optimizer(net->parameters(), {.lr = 0.05});
  Generator generator(7 + static_cast<uint64_t>(group->rank()));
  for (int step = 0; step < 5; ++step) {
    const Tensor images = randn({32, 1, 8, 8}, kFloat32, &generator);
    const Tensor labels = randint(0, 10, {32}, {kInt64}, &generator);
    optimizer.zero_grad();
    cross_entropy(ddp(images), labels).backward();
    optimizer.step();
  }
  return dist::trace_json(*group, ddp.reducer());
}

const AddRankJob add_explain_job("explain-digits", &explain_job);

std::string bytes(int64_t n) { return dist::bytes_in_words(n); }

struct Moment {
  double time;
  std::string words;
};

// A bucket's way, or one of the two phases in it, which not every process group can tell apart.
void add_collective(const TraceSlice& slice, std::vector<Moment>& moments) {
  const json& details = slice.arguments;
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
                                                bytes(details.at("bytes").get<int64_t>()))});
    moments.push_back({slice.end, details.at("arrival_known").get<bool>()
                                      ? fmt::format("{} is seen to be averaged", slice.name)
                                      : fmt::format("{} is averaged {:.1f} us after its launch; how much of that was "
                                                    "waiting for peers is not known, so there is no bandwidth",
                                                    slice.name, length)});
  }
}

// Throws nlohmann's error for a file that is not a trace of Brigade.
std::string explain(const json& trace) {
  const json& facts = trace.at("brigade");
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
          ? "They were cut anew after the first backward, in the order in which rank 0's gradients became ready."
          : "They stand in reverse order of registration, since the last layers finish first in backward; they are cut "
            "anew after the first backward.",
      bytes(first), bytes(cap));
  size_t number = 0;
  for (const json& bucket : facts.at("buckets")) {
    int64_t total = 0;
    for (const json& index : bucket.at("parameters"))
      total += parameters.at(index.get<size_t>()).at("bytes").get<int64_t>();
    const int64_t limit = number == 0 ? first : cap;
    text += fmt::format("  bucket {} ({}, {}): {}\n", number, bucket.at("dtype").get<std::string>(), bytes(total),
                        total >= limit ? fmt::format("closed at its cap of {}", bytes(limit))
                                       : std::string("closed because no parameter was left"));
    for (const json& index : bucket.at("parameters"))
      text += fmt::format("    {} ({})\n", name_of(index),
                          bytes(parameters.at(index.get<size_t>()).at("bytes").get<int64_t>()));
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
  const std::vector<TraceSlice> slices = slices_of(trace);
  int64_t last = 0;
  for (const TraceSlice& slice : slices) {
    if (slice.name == "backward") last = std::max(last, slice.arguments.at("iteration").get<int64_t>());
  }
  std::vector<Moment> moments;
  double begin = -1;
  for (const TraceSlice& slice : slices) {
    if (slice.rank != 0 || slice.arguments.value("iteration", int64_t{0}) != last) continue;
    const std::string& name = slice.name;
    const json& details = slice.arguments;
    if (slice.instant) {
      moments.push_back({slice.begin, fmt::format("gradient of {} is ready", name)});
    } else if (slice.category == "collective") {
      add_collective(slice, moments);
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

json trace_of_digits(const std::string& backend, int ranks, double bucket_mb, const std::string& trace_file) {
  const RankJobOutcome outcome = run_rank_job("explain-digits", json{{"bucket_mb", bucket_mb}}.dump(), backend, ranks);
  require_ok(outcome);
  if (!trace_file.empty()) write_text(trace_file, outcome.ranks[0].text);
  return json::parse(outcome.ranks[0].text);
}

// A row of "results": the section "brigade" of the trace, and the events.
json row_of(const json& trace) {
  json row = trace.at("brigade");
  row["traceEvents"] = trace.at("traceEvents");
  return row;
}

json trace_of(const json& row) {
  json facts = row;
  json events = facts.at("traceEvents");
  facts.erase("traceEvents");
  return {{"brigade", std::move(facts)}, {"traceEvents", std::move(events)}};
}

// A trace, or what --json has written.
json read_trace(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw IoError("explain: cannot read " + file + ": " + std::strerror(errno));
  try {
    json found;
    in >> found;
    if (found.contains("results")) return trace_of(found.at("results").at(0));
    static_cast<void>(found.at("brigade"));
    return found;
  } catch (const json::exception& error) {
    throw ValueError("explain: " + file +
                     " is neither a trace of Brigade nor what explain --json writes: " + error.what());
  }
}

// A word that can be no recipe.
bool names_file(const std::string& word) {
  std::error_code error;
  return word.find_first_of("./") != std::string::npos || std::filesystem::exists(word, error);
}

}  // namespace

void add_explain(Command& app) {
  struct Arguments {
    std::string what;
    std::string backend = "shm";
    int ranks = 2;
    double bucket_mb = 0.02;
    std::string trace_file;
    Results results;
  };
  auto given = std::make_shared<Arguments>();
  Command command =
      app.add_command("explain", "Tell in words how gradients travel: buckets, ready order, one iteration");
  command.footer(
      "Examples:\n  brigade explain digits\n  brigade explain digits --bucket-mb 25 --trace trace.json\n  brigade "
      "explain "
      "trace.json\n  brigade explain digits --json digits.json\n  brigade explain digits.json\nA trace opens in "
      "https://ui.perfetto.dev and chrome://tracing.");
  command.add_option("what", given->what, "a recipe (digits), or a file that --trace or --json has written").required();
  command.add_option("--ranks", given->ranks, "number of ranks").check(number_from(1, 64)).show_default();
  command.add_option("--backend", given->backend, "threads, shm or gloo").show_default();
  command.add_option("--bucket-mb", given->bucket_mb, "cap of the buckets in MiB (small, so that there are several)")
      .check(number_from(1e-6, 1e6))
      .show_default();
  command.add_option("--trace", given->trace_file, "write the trace of the recipe to a file");
  given->results.add_json_option(command);
  command.action([given] {
    const bool recipe = given->what == "digits";
    if (!recipe && !names_file(given->what))
      throw ValueError("explain: '" + given->what + "' is neither a recipe (digits) nor a file");
    if (!recipe && !given->trace_file.empty())
      throw ValueError("explain: --trace writes the trace of a recipe; " + given->what + " is a file");
    check_backend(given->backend);
    check_writable(given->trace_file);
    given->results.begin();
    const json trace = recipe ? trace_of_digits(given->backend, given->ranks, given->bucket_mb, given->trace_file)
                              : read_trace(given->what);
    try {
      std::cout << explain(trace);
    } catch (const json::exception& error) {
      throw ValueError("explain: " + given->what + " lacks something that a trace of Brigade has: " + error.what());
    }
    given->results.add(row_of(trace));
    given->results.write();
    return 0;
  });
}

}  // namespace brigade::lab
