// Finds on the tape why one parameter never became ready in a backward.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/dist/diagnosis/verdict.h>

#include <string>

namespace brigade::dist {

// `name`: full name of the parameter ("encoder.0.weight"). `reached_any`: whether the backward
// reached any parameter of the module. Looks at the tape of the calling thread.
Cause find_cause(const std::string& name, const Tensor& parameter, const autograd::Plan& plan, bool reached_any);

}  // namespace brigade::dist
