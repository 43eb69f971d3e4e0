// Names an unmanaged parameter by its module, its optimizer, and the line that made it trainable.
#include <brigade/dist/checks/parameter_name.h>

#include <brigade/autograd/meta.h>
#include <brigade/core/place.h>
#include <brigade/optim/optimizer.h>

#include <fmt/format.h>

namespace brigade::dist {

std::string name_of_unmanaged(const autograd::Update& update, size_t position) {
  const autograd::AutogradMeta* const known = autograd::meta(update.parameters[position]);
  if (known && !known->registered_as.empty()) return known->registered_as;
  size_t number = 0;
  for (const optim::Optimizer* const each : optim::optimizers_of_this_thread()) {
    number += each->name() == update.name;
    if (each == update.optimizer) break;
  }
  const std::string name =
      fmt::format("parameter {} of {}{}", position, update.name, number > 1 ? fmt::format("#{}", number) : "");
  if (!known || known->requires_grad_set_at.line() == 0) return name;
  return fmt::format("{} (made at {})", name, to_string(known->requires_grad_set_at));
}

}  // namespace brigade::dist
