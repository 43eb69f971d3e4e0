// Finds the first number that is not finite.
#include <brigade/dist/diagnosis/numbers.h>

#include <brigade/autograd/detail/findings.h>
#include <brigade/autograd/meta.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>

#include <fmt/format.h>

#include <algorithm>

namespace brigade::dist {
namespace {

// Names the dtype in a text if it is a half type, whose range may have been exceeded.
std::string made_in(DType dtype) { return is_half(dtype) ? std::string(" in ") + name(dtype) : ""; }

}  // namespace

void NonFinite::note_loss(SourceLocation where) {
  op.clear();
  place = where;
  text = fmt::format("the loss of the backward at {} is not finite", to_string(where));
}

void NonFinite::look_at_loss(const autograd::Plan& plan, bool keep_device_losses) {
  for (const Tensor& root : plan.roots()) {
    if (root.numel() != 1) continue;
    if (root.device() != Device()) {
      if (keep_device_losses) device_losses.push_back(view::alias(root));
    } else {
      loss = loss || !std::isfinite(brigade::detail::element_as_double(root, 0));
    }
  }
  if (!loss) return;
  note_loss(plan.where());
  const auto first = autograd::detail::first_non_finite(plan.roots());
  if (!first.op) return;
  op = first.op;
  place = first.where;
  text += fmt::format("; the first value that is not finite is {} {}{} at {}",
                      first.is_result ? "the result of" : "what goes into, or comes out of,", first.op,
                      made_in(first.dtype), to_string(first.where));
}

void NonFinite::note_derivative(const char* of_op, SourceLocation where, DType dtype) {
  if (!op.empty()) return;
  op = of_op;
  if (where.line() != 0) place = where;
  text += fmt::format("; the first operation whose derivative is not finite is {}{} at {}", of_op, made_in(dtype),
                      to_string(where));
}

bool any_is_scaled(std::span<const NamedParameter> parameters) {
  return std::any_of(parameters.begin(), parameters.end(), [](const NamedParameter& each) {
    const autograd::AutogradMeta* const known = autograd::meta(each.tensor);
    return known && known->stamp.scale.label.first.scaler != 0;
  });
}

}  // namespace brigade::dist
