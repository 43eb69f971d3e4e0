// Reads traces from files.
#pragma once

#include <brigade/lab/trace_slices.h>

#include <nlohmann/json.hpp>

#include <deque>
#include <string>
#include <string_view>

namespace brigade::lab {

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

}  // namespace brigade::lab
