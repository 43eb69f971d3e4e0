// Traces from files.
#pragma once

#include <brigade/lab/trace_slices.h>

#include <nlohmann/json.hpp>

#include <deque>
#include <string>
#include <string_view>

namespace brigade::lab {

// A trace (docs/trace.md), or the one in what `brigade explain --json` has written.
struct Trace {
  nlohmann::json facts;  // its section "brigade"
  std::deque<TraceSlice> slices;
};

// Events are paired as they are read, and not kept: a trace may hold a million. `command` stands before the errors: IoError for
// a file that cannot be read, ValueError for what is no trace.
Trace read_trace(const std::string& command, const std::string& file);
// Of a text that dist::trace_json() has written; "trace" stands before the errors.
Trace trace_of_text(std::string_view text);

}  // namespace brigade::lab
