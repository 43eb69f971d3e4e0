// Traces from files.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace brigade::lab {

// A trace (docs/trace.md), or the one in what `brigade explain --json` has written. `command` stands
// before the errors: IoError for a file that cannot be read, ValueError for what is no trace.
nlohmann::json read_trace(const std::string& command, const std::string& file);

}  // namespace brigade::lab
