// The number that an operation multiplies its input by: how a loss is weighted.
#pragma once

#include <brigade/autograd/node.h>

#include <optional>

namespace brigade::autograd::detail {

// Of a sum, a difference, a product or a quotient of a tensor and a number (1 where that is only added); nothing for any
// other operation.
std::optional<double> number_factor(const Node& node);

}  // namespace brigade::autograd::detail
