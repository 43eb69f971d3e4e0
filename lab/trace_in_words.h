// What a trace shows, for people: the buckets, the ready order, the last iteration moment by
// moment.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace brigade::lab {

// Throws nlohmann's error for what is not a trace of Brigade, ValueError as slices_of().
std::string trace_in_words(const nlohmann::json& trace);

}  // namespace brigade::lab
