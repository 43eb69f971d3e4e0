// JSON from outside.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string_view>

namespace brigade::lab {

// A discarded value (is_discarded()) for what is not JSON, or is nested deeper than 64 times: to
// copy or to print that would take the stack.
nlohmann::json parse_json(std::string_view text);

}  // namespace brigade::lab
