// Finds on the tape why one parameter never became ready in a backward.
#pragma once

#include <brigade/autograd/tape_query.h>
#include <brigade/dist/errors/named_parameter.h>
#include <brigade/dist/errors/verdict.h>
#include <brigade/dist/reducer/observer.h>

#include <cstdint>
#include <optional>
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

// Searches the tape of the calling thread for what belongs to one backward of the wrapped module.
class CauseSearch {
 public:
  // The arguments must outlive this object.
  CauseSearch(const TracedBackward& backward, const WrappedModule& wrapped);
  // `parameter` has its full name ("encoder.0.weight").
  Cause operator()(const NamedParameter& parameter) const;
  // Where the module of the parameter was called for this backward; no line: not known.
  Place called_at(const NamedParameter& parameter) const;

 private:
  Cause cause_of(const NamedParameter& parameter, const autograd::Tape& tape) const;

  const TracedBackward& backward_;
  const WrappedModule& wrapped_;
  std::optional<autograd::BackwardOnTape> on_tape_;  // none: this thread has no tape
};
// Whether the roots of a backward that has ended would depend on one of the parameters if its path were not cut.
bool was_cut_off(std::span<const NamedParameter> parameters, const TracedBackward& backward);

}  // namespace brigade::dist
