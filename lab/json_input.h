// JSON from outside.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace brigade::lab {

// A discarded value (is_discarded()) for what is not JSON, or is nested deeper than 64 times: to
// copy or to print that would take the stack.
nlohmann::json parse_json(std::string_view text);
// The same of a file. Throws IoError "READER: cannot read FILE: why" (reader: "explain") where it
// cannot be read; no other than a regular file can, since a pipe may wait and a device need not end.
nlohmann::json read_json(const std::string& reader, const std::string& file);

}  // namespace brigade::lab
