// JSON from outside.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace brigade::lab {

// A discarded value (is_discarded()) for what is not JSON, or is nested deeper than 64 times: to
// copy or to print that would take the stack.
nlohmann::json parse_json(std::string_view text);
// The same of a file. Throws IoError "CANNOT FILE: why" where it cannot be read (cannot: "explain:
// cannot read").
nlohmann::json read_json(const std::string& cannot, const std::string& file);

}  // namespace brigade::lab
