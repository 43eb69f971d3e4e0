// Whether gradients are those of a scaled loss.
#pragma once

#include <brigade/autograd/meta.h>
#include <brigade/dist/errors/named_parameter.h>

#include <algorithm>
#include <span>

namespace brigade::dist {

// Of one of the parameters, as this rank's backward has made its gradient.
inline bool any_is_scaled(std::span<const NamedParameter> parameters) {
  return std::any_of(parameters.begin(), parameters.end(), [](const NamedParameter& each) {
    const autograd::AutogradMeta* const known = autograd::meta(each.tensor);
    return known && known->stamp.scale.label.first.scaler != 0;
  });
}

}  // namespace brigade::dist
