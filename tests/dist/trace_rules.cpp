#include "trace_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace brigade::test {
namespace {

using nlohmann::json;

struct Event {
  int64_t time = 0;
  const json* source = nullptr;
};

// The importer multiplies a floating-point number and cuts off what is below a nanosecond.
int64_t nanoseconds(const json& microseconds) { return static_cast<int64_t>(microseconds.get<double>() * 1000.0); }

std::string track_of(const json& event) {
  const int rank = event.at("pid");
  if (event.contains("id2"))
    return fmt::format("rank {}, {} {}", rank, event.at("cat").get<std::string>(),
                       event.at("id2").at("local").get<std::string>());
  if (event.contains("id"))
    return fmt::format("{} {}", event.at("cat").get<std::string>(), event.at("id").get<std::string>());
  return fmt::format("rank {}, lane {}", rank, event.at("tid").get<int>());
}

class Track {
 public:
  Track(std::string name, ImportedTrace& result) : name_(std::move(name)), result_(result) {}

  void take(const Event& event) {
    const json& source = *event.source;
    const std::string phase = source.at("ph");
    const ImportedSlice slice{source.at("name"), event.time, event.time, source.value("args", json::object())};
    // Slices that have ended enclose nothing.
    while (!open_.empty() && open_.back().complete && open_.back().slice.end <= event.time)
      open_.pop_back();
    if (phase == "B" || phase == "b") {
      open_.push_back({slice, false});
    } else if (phase == "E" || phase == "e") {
      end(slice);
    } else if (phase == "X" || phase == "i") {
      ImportedSlice whole = slice;
      if (phase == "X") whole.end += nanoseconds(source.at("dur"));
      for (const Open& open : open_) {
        if (open.complete && whole.end > open.slice.end) {
          problem(whole, fmt::format("dropped: it overlaps '{}'", open.slice.name));
          return;
        }
      }
      keep(whole);
      open_.push_back({whole, true});
    } else {
      problem(slice, "a phase of which no rule is known: " + phase);
    }
  }

  void finish() {
    for (const Open& open : open_) {
      if (!open.complete) problem(open.slice, "it never ends");
    }
  }

 private:
  struct Open {
    ImportedSlice slice;
    bool complete;
  };

  void end(const ImportedSlice& at) {
    if (open_.empty() || open_.back().slice.name != at.name) {
      problem(at, "it ends and is not what began last");
      return;
    }
    ImportedSlice slice = std::move(open_.back().slice);
    open_.pop_back();
    slice.end = at.begin;
    keep(std::move(slice));
  }
  void keep(ImportedSlice slice) { result_.tracks[name_].push_back(std::move(slice)); }
  void problem(const ImportedSlice& slice, const std::string& what) {
    result_.problems.push_back(fmt::format("{}: '{}' at {} ns: {}", name_, slice.name, slice.begin, what));
  }

  std::string name_;
  ImportedTrace& result_;
  std::vector<Open> open_;
};

}  // namespace

ImportedTrace import_trace(const json& trace) {
  ImportedTrace result;
  std::set<int> processes;
  for (const json& event : trace.at("traceEvents"))
    processes.insert(event.at("pid").get<int>());
  for (const json& event : trace.at("traceEvents")) {
    if (event.contains("tid") && processes.contains(event.at("tid").get<int>()))
      result.problems.push_back(
          fmt::format("tid {} is the number of a process, and its lane that one's", event.at("tid").get<int>()));
    if (event.contains("id"))
      result.problems.push_back(
          fmt::format("id {} is one of the whole trace, and its track no rank's", event.at("id").dump()));
  }
  std::vector<Event> events;
  std::map<std::string, int64_t> last;  // of begins and ends by track, in the order of the file
  for (const json& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    if (phase == "M") continue;
    const int64_t time = nanoseconds(event.at("ts"));
    if (time < 0) result.problems.push_back("a negative time");
    events.push_back({time, &event});
    if (phase == "X") continue;
    int64_t& before = last[track_of(event)];
    if (time < before) result.problems.push_back(track_of(event) + ": not in order of time");
    before = time;
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.time < b.time; });
  std::map<std::string, Track> tracks;
  for (const Event& event : events) {
    const std::string name = track_of(*event.source);
    tracks.try_emplace(name, name, result).first->second.take(event);
  }
  for (auto& [name, track] : tracks)
    track.finish();
  return result;
}

}  // namespace brigade::test
