// What a trace tells of a loss scaler, for people: the scale of each step, who found an infinity or
// a NaN, and which steps were skipped.
#pragma once

#include <brigade/lab/trace_file.h>

#include <string>

namespace brigade::lab {

// Throws nlohmann's error where the trace lacks something.
std::string scaler_history_in_words(const Trace& trace);

}  // namespace brigade::lab
