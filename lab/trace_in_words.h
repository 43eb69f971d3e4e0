// Describes a trace in words: the buckets, the ready order, and the events of the last iteration.
#pragma once

#include <brigade/lab/trace_file.h>

#include <string>

namespace brigade::lab {

// Throws nlohmann's error when the trace lacks a field.
std::string trace_in_words(const Trace& trace);

}  // namespace brigade::lab
