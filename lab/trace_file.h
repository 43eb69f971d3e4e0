// Traces: read from files, as slices of time, and in words.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace brigade::lab {

// --- Converts the begin and end events of a trace to slices of time.

// One event in the trace format (docs/trace.md); missing members are empty.
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
  bool instant = false;  // a moment: end equals begin
  // The arguments of the begin event; consecutive slices share equal ones. Not null.
  std::shared_ptr<const nlohmann::json> arguments;
};

// Pairs begin and end events one by one: a trace may hold a million.
class SliceCollector {
 public:
  // Error messages start with `source`: "trace", "explain: FILE".
  explicit SliceCollector(std::string source) : source_(std::move(source)) {}

  // Moves what it needs out of the event. Throws ValueError for an event that lacks a member, and for one that ends
  // but never began.
  void add(TraceEvent& event);
  // The slices in the order in which they end, asynchronous ones included. Throws ValueError when a slice never
  // ends.
  std::deque<TraceSlice> take();

 private:
  // The rank, whether the track is an id (not a lane), and its text.
  using TrackName = std::tuple<int, bool, std::string>;

  template <typename T>
  T& expect(std::optional<T>& member, const char* key) const;
  TrackName track_of(TraceEvent& event) const;
  TraceSlice begin(TraceEvent& event);
  void end(TraceEvent& event);

  std::string source_;
  int64_t events_ = 0;
  std::shared_ptr<const nlohmann::json> arguments_;  // of the previous event
  std::deque<TraceSlice> slices_;
  // The open slices of each lane, or of each id of a rank's asynchronous events: the last one to begin ends first.
  std::map<TrackName, std::vector<TraceSlice>> open_;
};

// --- Reads traces from files.

// A trace (docs/trace.md), or the trace inside the output of `brigade explain --json`.
struct Trace {
  nlohmann::json facts;  // its section "brigade"
  std::deque<TraceSlice> slices;
};

// Pairs events as they are read without keeping them: a trace may hold a million. Error messages start with
// `command`: IoError for a file that cannot be read, ValueError for one that is not a trace.
Trace read_trace(const std::string& command, const std::string& file);
// Parses the output of dist::trace_json(). Error messages start with "trace".
Trace trace_of_text(std::string_view text);

// --- Describes a trace in words: the buckets, the ready order, and the events of the last iteration.

// Throws nlohmann's error when the trace lacks a field.
std::string trace_in_words(const Trace& trace);

// --- Describes a loss scaler's history from a trace: the scale of each step, the ranks that found an infinity or a
// NaN, and the skipped steps.

// Throws nlohmann's error when the trace lacks a field.
std::string scaler_history_in_words(const Trace& trace);

}  // namespace brigade::lab
