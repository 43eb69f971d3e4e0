// Finds on the tape why one parameter never became ready in a backward.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/dist/diagnosis/named_parameter.h>
#include <brigade/dist/diagnosis/verdict.h>

#include <cstdint>
#include <span>
#include <string>

namespace brigade::dist {

// The backward in which a parameter is missed: one that runs, or one that has ended.
class TracedBackward {
 public:
  explicit TracedBackward(const autograd::Plan& plan)
      : roots_(plan.roots()), where_(plan.where()), number_(plan.number()) {}
  // Plan::where and Plan::number.
  TracedBackward(SourceLocation where, uint64_t number) : where_(where), number_(number) {}

  SourceLocation where() const noexcept { return where_; }
  bool has_ended() const noexcept { return roots_.empty(); }
  std::span<const Tensor> roots() const noexcept { return roots_; }
  uint64_t number() const noexcept { return number_; }

 private:
  std::span<const Tensor> roots_;
  SourceLocation where_;
  uint64_t number_;
};

// `name`: full name of the parameter ("encoder.0.weight"). `reached_any`: whether the backward
// reached any parameter of the module. `diagnosis`: whether the wrapper asked for a record. Looks at
// the tape of the calling thread.
Cause find_cause(const std::string& name, const Tensor& parameter, const TracedBackward& backward, bool reached_any,
                 bool diagnosis);
// Whether the roots of a backward that has ended depend on one of the parameters, but for a cut.
bool was_cut_off(std::span<const NamedParameter> parameters, const TracedBackward& backward);

}  // namespace brigade::dist
