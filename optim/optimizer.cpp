// A step with its hooks and listeners, zero_grad, and checks of parameters and gradients.
#include <brigade/optim/optimizer.h>

#include <brigade/autograd/grad_mode.h>
#include <brigade/autograd/listener.h>
#include <brigade/autograd/meta.h>
#include <brigade/autograd/tape.h>
#include <brigade/autograd/write_log.h>
#include <brigade/core/place.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/nn/call_scope.h>
#include <brigade/optim/detail/grouped_optimizer.h>
#include <brigade/optim/detail/scaled_gradients.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <thread>

namespace brigade::optim {
namespace {

// The living optimizers of all threads: one may be destroyed on another thread than the one that made it.
struct Living {
  std::mutex mutex;
  std::vector<std::pair<std::thread::id, const Optimizer*>> all;
  uint64_t made = 0;
};
Living& living() {
  static auto* const one = new Living;  // never destroyed: optimizers may be static objects
  return *one;
}

}  // namespace

Optimizer::Optimizer(SourceLocation made_at)
    : made_at_(is_in_standard_library(made_at) ? SourceLocation() : made_at), made_on_(std::this_thread::get_id()) {
  const std::lock_guard lock(living().mutex);
  living().all.emplace_back(made_on_, this);
  serial_ = ++living().made;
}

Optimizer::~Optimizer() {
  const std::lock_guard lock(living().mutex);
  std::erase_if(living().all, [this](const auto& each) { return each.second == this; });
}

std::vector<const Optimizer*> optimizers_of_this_thread() {
  std::vector<const Optimizer*> found;
  const std::lock_guard lock(living().mutex);
  for (const auto& [thread, optimizer] : living().all) {
    if (thread == std::this_thread::get_id()) found.push_back(optimizer);
  }
  return found;
}

autograd::Update Optimizer::announcement(const std::vector<Tensor>& parameters, autograd::ScaledStep* scaled,
                                         bool moves, SourceLocation where) const {
  const auto options = [this, scaled] {
    std::string text = options_text();
    if (!scaled) return text;
    text += "\nloss scaler:";
    detail::add_option_text(text, "scale", scaled->loss_scale);
    if (scaled->device_found_inf.defined()) detail::add_option_text(text, "capturable", 1);
    return text;
  };
  std::vector<size_t> sizes;
  for (size_t g = 0; g < groups(); ++g)
    sizes.push_back(group_parameters(g).size());
  return {.optimizer = this,
          .name = name(),
          .number = steps_ + 1,
          .parameters = parameters,
          .groups = std::move(sizes),
          .options = options,
          .where = where,
          .keeps_state = keeps_state(),
          .serial = serial_,
          .made_at = made_at_,
          .state_loaded_at = state_loaded_at_,
          .state_is_shared = !handed_out_.empty(),
          .state = [this] { return kept_state(); },
          .scaled = scaled,
          .moves = moves};
}

// Listeners that observe the gradients may throw before anything moves.
void Optimizer::announced_step(autograd::ScaledStep* scaled, bool moves, SourceLocation where) {
  const std::vector<Tensor> all = parameters();
  if (moves) autograd::announce_reading(all);
  // Hooks change gradients before the ranks compare them.
  if (moves && !(scaled && scaled->found_inf)) run_pre_hooks(where);
  // Check after the pre-hooks, which may unscale. If a step multiplies by a factor, its scaler has already checked it.
  const bool is_skipped_or_multiplies =
      scaled && (scaled->found_inf || scaled->grad_factor != 1 || scaled->device_factor.defined());
  std::optional<autograd::ScaleFault> fault;
  if (moves && !is_skipped_or_multiplies) fault = detail::scale_fault_of_step(all);
  if (fault) {
    refuse_step(*fault, where);
    detail::throw_scale_fault(name() + ".step()", all, *fault, where);
  }
  const autograd::AnnouncedUpdate announced(all, [&] { return announcement(all, scaled, moves, where); });
  if (!moves) return;
  if (scaled && scaled->found_inf) {
    ++skipped_;
    skipped_at_ = where;
    return;
  }
  const ScalingGuard scaling(
      *this, scaled ? Scaling{scaled->grad_factor, scaled->device_factor, scaled->device_found_inf} : Scaling{});
  move_all(all, where);
}

// Iterates over a copy: hooks may remove themselves.
void Optimizer::run_pre_hooks(SourceLocation where) {
  for (const auto hooks = pre_hooks_; const auto& [handle, hook] : hooks)
    hook(*this, where);
}

void Optimizer::refuse_step(const autograd::ScaleFault& fault, SourceLocation where) const noexcept {
  try {
    const std::vector<Tensor> all = parameters();
    const autograd::AnnouncedUpdate announced(all, [&] {
      autograd::Update update = announcement(all, nullptr, true, where);
      update.scale_fault = &fault;
      return update;
    });
  } catch (const std::exception&) {
    return;  // the caller throws the fault in any case
  }
}

void Optimizer::step(SourceLocation where) { announced_step(nullptr, true, where); }
void Optimizer::step_unless_found(autograd::ScaledStep& scaled, SourceLocation where) {
  announced_step(&scaled, true, where);
}
void Optimizer::ask_found_inf(autograd::ScaledStep& scaled, SourceLocation where) {
  announced_step(&scaled, false, where);
}

void Optimizer::move_all(const std::vector<Tensor>& all, SourceLocation where) {
  stepping_at_ = where;
  {
    const NoGradGuard no_grad(where);
    do_step();
  }
  ++steps_;
  state_loaded_at_ = {};
  const bool followed = autograd::follows_writes();
  const std::string own_name = followed ? name() : std::string();
  for (const Tensor& parameter : all) {
    autograd::AutogradMeta* known = autograd::meta(parameter);
    if (!known || !known->grad.defined()) continue;
    known->stamp.on_step(where);
    if (followed) autograd::note_update(parameter, own_name, where);
  }
  for (const auto hooks = post_hooks_; const auto& [handle, hook] : hooks)
    hook(*this, where);
}

void Optimizer::check_scale(std::span<const Tensor> parameters, SourceLocation where) const {
  if (scaling_.grad_factor != 1 || scaling_.device_factor.defined()) return;
  if (const auto fault = detail::scale_fault_of_step(parameters))
    detail::throw_scale_fault(name() + ".step()", parameters, *fault, where);
}

void Optimizer::zero_grad(bool set_to_none, SourceLocation where) {
  for (const Tensor& parameter : parameters()) {
    const Tensor grad = parameter.grad();
    if (!grad.defined()) continue;
    if (set_to_none) {
      parameter.set_grad(Tensor(), where);
    } else {
      const NoGradGuard no_grad(where);
      const autograd::Tape::Pause pause;
      grad.zero_(where);
      autograd::meta(parameter)->stamp.on_zeros();
    }
  }
}

std::vector<Tensor> Optimizer::parameters() const {
  std::vector<Tensor> result;
  for (size_t g = 0; g < groups(); ++g) {
    const auto& group = group_parameters(g);
    result.insert(result.end(), group.begin(), group.end());
  }
  return result;
}

std::string Optimizer::name() const { return nn::readable_type_name(typeid(*this)); }

namespace {
[[noreturn]] void throw_without(const std::string& optimizer, const char* what) {
  throw ValueError("{} has no {} that could be read or set; override the accessors of Optimizer", optimizer, what);
}
}  // namespace

std::vector<autograd::KeptState> Optimizer::kept_state() const { return {}; }

void Optimizer::note_state_loaded(SourceLocation where) noexcept {
  state_loaded_at_ = where;
  handed_out_.clear();  // loading has replaced these tensors
}

// Skip tensors that are already followed, so that their latest write is not lost.
void Optimizer::follow_handed_out(const OptimizerState& state) const {
  if (std::this_thread::get_id() != made_on_) return;
  std::vector<Tensor> unknown;
  for (const auto& [name, tensor] : state.tensors) {
    if (!tensor.storage()->is_watched() || !autograd::last_write(tensor)) unknown.push_back(tensor);
  }
  if (!unknown.empty())
    handed_out_.push_back(std::make_unique<autograd::FollowedWrites>(unknown, "state_dict", SourceLocation()));
}

double Optimizer::lr(size_t) const { throw_without(name(), "learning rate"); }
void Optimizer::do_set_lr(size_t, double) { throw_without(name(), "learning rate"); }
void Optimizer::set_lr(size_t group, double rate, SourceLocation where, std::string by) {
  const bool changes = lr(group) != rate;
  do_set_lr(group, rate);
  if (changes) rate_changes_.insert_or_assign(group, RateChange{rate, where, std::move(by)});
}
double Optimizer::momentum(size_t) const { throw_without(name(), "momentum"); }
void Optimizer::set_momentum(size_t, double) { throw_without(name(), "momentum"); }

double Optimizer::initial_lr(size_t group) { return initial_lrs_.try_emplace(group, lr(group)).first->second; }
void Optimizer::set_initial_lr(size_t group, double lr) { initial_lrs_[group] = lr; }

std::function<void()> Optimizer::undo_point() {
  // Loading replaces the tensors; the old ones keep their values.
  return [this, before = state_dict()] { load_state_dict(before); };
}

Tensor Optimizer::dense_gradient(const Tensor& parameter) {
  const Tensor grad = parameter.grad();
  return grad.defined() ? kernels::contiguous(grad) : Tensor();
}

namespace {

// From the smallest stride upwards, each stride has to exceed the extent of all smaller ones.
bool elements_share_memory(const Tensor& tensor) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, steps
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.numel() > 0 && tensor.size(d) > 1) dims.emplace_back(tensor.stride(d), tensor.size(d) - 1);
  }
  std::sort(dims.begin(), dims.end());
  int64_t reached = 0;
  for (const auto& [stride, steps] : dims) {
    if (stride <= reached) return true;
    reached += stride * steps;
  }
  return false;
}

}  // namespace

void Optimizer::check_new_parameters(const std::vector<Tensor>& parameters) const {
  if (parameters.empty()) throw ValueError("optimizer got an empty parameter list");
  std::set<const TensorImpl*> known;
  for (const Tensor& parameter : this->parameters())
    known.insert(parameter.impl());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& parameter = parameters[i];
    if (!parameter.defined()) throw ValueError("optimizer: parameter {} is undefined", i);
    if (!parameter.is_leaf()) {
      throw AutogradError(
          "can't optimize a non-leaf Tensor: parameter {} ({}) is the result of an operation; give the "
          "parameter that it was computed from",
          i, describe(parameter));
    }
    if (!is_floating_point(parameter.dtype())) {
      throw DTypeError("optimizer: parameter {} is {}, expected a floating dtype", i, describe(parameter));
    }
    if (elements_share_memory(parameter)) {
      throw ShapeError(
          "optimizer: the elements of parameter {} ({}) share memory: its strides are {}; give its clone()", i,
          describe(parameter), parameter.strides());
    }
    if (!known.insert(parameter.impl()).second) {
      throw ValueError("some parameters appear in more than one parameter group: parameter {} ({}) is there already", i,
                       describe(parameter));
    }
  }
}

uint64_t Optimizer::register_step_pre_hook(StepHook hook) {
  pre_hooks_.emplace_back(next_handle_, std::move(hook));
  return next_handle_++;
}

uint64_t Optimizer::register_step_post_hook(StepHook hook) {
  post_hooks_.emplace_back(next_handle_, std::move(hook));
  return next_handle_++;
}

void Optimizer::remove_hook(uint64_t handle) noexcept {
  const auto matches = [handle](const auto& entry) { return entry.first == handle; };
  std::erase_if(pre_hooks_, matches);
  std::erase_if(post_hooks_, matches);
}

}  // namespace brigade::optim
