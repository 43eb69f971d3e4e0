// Operations on the tensors of a whole tree: modes, gradients, dtypes, saving and loading.
#include <brigade/autograd/grad_mode.h>
#include <brigade/autograd/listener.h>
#include <brigade/autograd/meta.h>
#include <brigade/autograd/tape.h>
#include <brigade/autograd/write_log.h>
#include <brigade/core/device_runtime.h>
#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/nn/module.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace brigade::nn {

void Module::apply(const std::function<void(Module&)>& body) {
  std::set<const Module*> seen;
  const std::function<void(Module&)> descend = [&](Module& module) {
    if (!seen.insert(&module).second) return;
    for (const auto& [name, child] : module.named_children())
      descend(*child);
    body(module);
  };
  descend(*this);
}

void Module::train(bool on) {
  training_ = on;
  for (const auto& [name, child] : children_)
    child->train(on);
}

void Module::zero_grad(bool set_to_none, SourceLocation where) {
  for (const auto& [name, parameter] : list_parameters(true, "")) {
    const Tensor grad = parameter.grad();
    if (!grad.defined()) continue;
    if (set_to_none) {
      parameter.set_grad(Tensor(), where);
    } else {
      const NoGradGuard no_grad(where);
      const autograd::Tape::Pause pause;
      grad.zero_(where);
    }
  }
}

void Module::requires_grad_(bool requires_grad, SourceLocation where) {
  for (const auto& [name, parameter] : list_parameters(true, ""))
    parameter.requires_grad_(requires_grad, where);
}

void Module::to(DType dtype, SourceLocation where) {
  if (!is_floating_point(dtype))
    throw DTypeError("Module::to: expected a floating dtype, got {}", brigade::name(dtype));
  const auto wanted = [dtype](const Tensor& tensor) {
    return TensorOptions(is_floating_point(tensor.dtype()) ? dtype : tensor.dtype(), tensor.device());
  };
  convert(brigade::name(dtype), wanted, where);
}

void Module::to(Device device, SourceLocation where) {
  if (device != Device()) device_runtime(device);  // throws when the device does not exist
  const auto wanted = [device](const Tensor& tensor) { return TensorOptions(tensor.dtype(), device); };
  convert(to_string(device), wanted, where);
}

void Module::convert(const std::string& what, const std::function<TensorOptions(const Tensor&)>& wanted,
                     SourceLocation where) {
  std::vector<std::pair<Tensor, TensorOptions>> changing;
  for (const auto& list : {list_parameters(true, ""), named_buffers()}) {
    for (const auto& [name, tensor] : list) {
      const TensorOptions options = wanted(tensor);
      if (options.dtype == tensor.dtype() && options.device == tensor.device()) continue;
      const autograd::AutogradMeta* known = autograd::meta(tensor);
      if (known && (!known->observers.empty() || known->grad_target.defined())) {
        throw AutogradError(
            where,
            "Module::to at {} cannot make parameter `{}` {}.\nwhy: its gradient lives in a bucket of dtype {} on {}.\ndo:  "
            "convert the module before it is wrapped.",
            to_string(where), name, what, brigade::name(tensor.dtype()), tensor.device());
      }
      changing.emplace_back(tensor, options);
    }
  }
  for (const auto& [tensor, options] : changing) {
    const Tensor converted = empty(tensor.sizes(), options);
    kernels::copy(converted, tensor);
    // The shared TensorImpl moves to the new storage, so that every holder of this parameter (optimizers, ties) sees
    // the change.
    TensorImpl& impl = *tensor.impl();
    impl.storage = converted.storage();
    impl.strides = converted.strides();
    impl.offset = converted.storage_offset();
    impl.contiguous = true;
    impl.dtype = options.dtype;
    if (tensor.grad().defined()) tensor.set_grad(Tensor());
  }
}

Named<Tensor> Module::state_dict() const {
  Named<Tensor> result;
  visit("", [&](const std::string& path, const Module& module) {
    for (const auto* list : {&module.parameters_, &module.buffers_}) {
      // Do not use detach(): on the tape it would be a use of the parameter and a cut, which a diagnosis would then
      // blame.
      for (const auto& [name, tensor] : *list)
        result.emplace_back(path.empty() ? name : path + "." + name, view::alias(tensor));
    }
  });
  return result;
}

namespace {

std::string quoted(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    text += (text.empty() ? "\"" : ", \"") + name + "\"";
  return text;
}

// NaNs at the same position are equal.
bool same_values(const Tensor& a, const Tensor& b) {
  if (a.is_same(b)) return true;
  const auto x = brigade::detail::elements_of<double>(a), y = brigade::detail::elements_of<double>(b);
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [](double p, double q) { return p == q || (p != p && q != q); });
}

// For tensors with several names, lists those names whose given values differ from the first one's.
std::string conflicts(const Named<Tensor>& own, const std::unordered_map<std::string, Tensor>& given) {
  std::string text;
  std::map<std::pair<const void*, int64_t>, std::string> first_names;
  for (const auto& [name, tensor] : own) {
    const auto found = given.find(name);
    if (found == given.end() || !found->second.defined() || found->second.sizes() != tensor.sizes() ||
        tensor.numel() == 0)
      continue;
    const auto [first, is_new] = first_names.try_emplace({tensor.storage().get(), tensor.storage_offset()}, name);
    if (is_new || given.at(first->second).sizes() != tensor.sizes() ||
        same_values(given.at(first->second), found->second))
      continue;
    text += "\n\tconflicting values for " + first->second + " and " + name +
            ": they are one tensor in this model, but differ in the checkpoint";
  }
  return text;
}

}  // namespace

IncompatibleKeys Module::load_state_dict(const Named<Tensor>& state, bool strict, SourceLocation where) {
  const std::unordered_map<std::string, Tensor> given(state.begin(), state.end());
  const Named<Tensor> own = state_dict();
  std::set<std::string> own_names;
  IncompatibleKeys keys;
  std::string mismatches;
  for (const auto& [name, tensor] : own) {
    own_names.insert(name);
    const auto found = given.find(name);
    if (found == given.end()) {
      keys.missing.push_back(name);
    } else if (!found->second.defined()) {
      mismatches += "\n\tundefined value for " + name + ": expected " + describe(tensor);
    } else if (found->second.sizes() != tensor.sizes()) {
      mismatches += "\n\tsize mismatch for " + name + ": copying a param with shape " +
                    to_string(found->second.sizes()) + " from checkpoint, the shape in current model is " +
                    to_string(tensor.sizes());
    }
  }
  for (const auto& [name, tensor] : state) {
    if (!own_names.contains(name)) keys.unexpected.push_back(name);
  }
  std::string problems;
  if (strict && !keys.missing.empty()) problems += "\n\tMissing key(s) in state_dict: " + quoted(keys.missing);
  if (strict && !keys.unexpected.empty()) problems += "\n\tUnexpected key(s) in state_dict: " + quoted(keys.unexpected);
  problems += mismatches + conflicts(own, given);
  if (!problems.empty()) throw ValueError("Error(s) in loading state_dict for {}:{}", this->name(), problems);
  const NoGradGuard no_grad(where);
  const autograd::Tape::Pause pause;
  for (const auto& [name, tensor] : own) {
    const auto found = given.find(name);
    if (found == given.end()) continue;
    tensor.copy_(found->second, where);
    autograd::note_write(tensor, "load_state_dict", where);  // the name that the user knows
  }
  return keys;
}

}  // namespace brigade::nn
