// Finds on the tape why one parameter never became ready in a backward.
#pragma once

#include <brigade/dist/errors/named_parameter.h>
#include <brigade/dist/errors/verdict.h>
#include <brigade/dist/reducer/observer.h>

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

namespace brigade::dist {

// What the wrapper knows of its module as a whole.
struct WrappedModule {
  bool reached_any = false;  // the backward reached at least one of its parameters
  bool diagnosis = true;     // the wrapper requested a record
  uint64_t newest = 0;       // the largest id of its parameters: objects made later have larger ones
  // Paths of its modules, by their addresses. If empty, calls are identified by the paths that they were recorded with.
  std::unordered_map<const void*, std::string> paths = {};
};

// Searches the tape of the calling thread. `parameter` has its full name ("encoder.0.weight").
Cause find_cause(const NamedParameter& parameter, const TracedBackward& backward, const WrappedModule& wrapped);
// Whether the roots of a backward that has ended would depend on one of the parameters if its path were not cut.
bool was_cut_off(std::span<const NamedParameter> parameters, const TracedBackward& backward);

}  // namespace brigade::dist
