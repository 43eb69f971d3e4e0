// What a trace tells of a loss scaler, for people: the scale of each step, who found an infinity or
// a NaN, and which steps were skipped.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace brigade::lab {

// Throws nlohmann's error for what is not a trace of Brigade, ValueError as slices_of().
std::string scaler_history_in_words(const nlohmann::json& trace);

}  // namespace brigade::lab
