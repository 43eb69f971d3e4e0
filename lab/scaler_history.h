// Describes a loss scaler's history from a trace: the scale of each step, the ranks that found an infinity or a
// NaN, and the skipped steps.
#pragma once

#include <brigade/lab/trace_file.h>

#include <string>

namespace brigade::lab {

// Throws nlohmann's error when the trace lacks a field.
std::string scaler_history_in_words(const Trace& trace);

}  // namespace brigade::lab
