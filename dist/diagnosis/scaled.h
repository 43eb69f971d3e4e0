// Tests whether gradients are those of a scaled loss.
#pragma once

#include <brigade/autograd/meta.h>
#include <brigade/dist/errors/named_parameter.h>

#include <algorithm>
#include <span>

namespace brigade::dist {

// Whether this rank's backward computed the gradient of any of the parameters from a scaled loss.
inline bool any_is_scaled(std::span<const NamedParameter> parameters) {
  return std::any_of(parameters.begin(), parameters.end(), [](const NamedParameter& each) {
    const autograd::AutogradMeta* const known = autograd::meta(each.tensor);
    return known && known->stamp.scale.label.first.scaler != 0;
  });
}

}  // namespace brigade::dist
