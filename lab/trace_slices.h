// Reads what a trace shows: from events that begin and end to slices of time.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace brigade::lab {

// One event as the trace format has it (docs/trace.md); what is not there is empty.
struct TraceEvent {
  std::optional<std::string> phase;  // "ph"
  std::optional<std::string> name;
  std::string category;                 // "cat"
  std::optional<int> rank;              // "pid"
  std::optional<std::string> lane, id;  // "tid"; "id" or "id2": a number as text
  std::optional<double> time;           // "ts", microseconds
  std::optional<nlohmann::json> arguments;
};

struct TraceSlice {
  int rank = 0;
  std::string name;
  std::string category;
  double begin = 0;  // microseconds
  double end = 0;
  bool instant = false;  // a moment: its end is its begin
  // Those of its begin; slices that follow each other share what is equal. Not null.
  std::shared_ptr<const nlohmann::json> arguments;
};

// Pairs begin and end events one by one: a trace may hold a million.
class SliceCollector {
 public:
  // `source` stands before the errors: "trace", "explain: FILE".
  explicit SliceCollector(std::string source) : source_(std::move(source)) {}

  // Takes what it needs out of the event. Throws ValueError for one that lacks something, and for one that ends and never began.
  void add(TraceEvent& event);
  // In the order in which they end; what is asynchronous among the others. Throws ValueError where one never ends.
  std::deque<TraceSlice> take();

 private:
  // The rank, whether it is a lane or an id, and its number or its text.
  using TrackName = std::tuple<int, bool, std::string>;

  template <typename T>
  T& expect(std::optional<T>& member, const char* key) const;
  TrackName track_of(TraceEvent& event) const;
  TraceSlice begin(TraceEvent& event);
  void end(TraceEvent& event);

  std::string source_;
  int64_t events_ = 0;
  std::shared_ptr<const nlohmann::json> arguments_;  // of the event before
  std::deque<TraceSlice> slices_;
  // What is open on a lane, or of a rank's asynchronous events of one id: the last one that began ends first.
  std::map<TrackName, std::vector<TraceSlice>> open_;
};

}  // namespace brigade::lab
