// What a trace shows, for people: the buckets, the ready order, the last iteration moment by
// moment.
#pragma once

#include <brigade/lab/trace_file.h>

#include <string>

namespace brigade::lab {

// Throws nlohmann's error where the trace lacks something.
std::string trace_in_words(const Trace& trace);

}  // namespace brigade::lab
