// The number by which an operation multiplies its input: the weight of a loss.
#pragma once

#include <brigade/autograd/node.h>

#include <optional>

namespace brigade::autograd::detail {

// Set for a sum, a difference, a product or a quotient of a tensor and a number (1 if the number is only added);
// nothing for any other operation.
std::optional<double> number_factor(const Node& node);

}  // namespace brigade::autograd::detail
