// What the reducer raises: the common error of all ranks, and what a communication hook got wrong. More than the
// payload is exchanged here and in reducer_advice.cpp only; all ranks come here together, since all have read the same
// words.
#include <brigade/dist/reducer/reducer.h>

#include <brigade/autograd/meta.h>
#include <brigade/core/view.h>
#include <brigade/dist/diagnosis/report.h>
#include <brigade/kernels/bucket.h>
#include <brigade/kernels/elementwise.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace brigade::dist {

std::vector<std::string> Reducer::exchange(const std::string& text, const char* about) {
  return group_->all_gather_text(text, fmt::format("{} of DDP({})", about, options_.module_name), backward_where_);
}

RankReport Reducer::own_report(const autograd::Plan* plan, const std::string& failure) const {
  RankReport mine;
  mine.rank = group_->rank();
  mine.round = round_;
  mine.backward = to_string(backward_where_);
  mine.failure = failure;
  mine.recorded.assign(recorded_.begin(), recorded_.end());
  mine.recorded_at = recorded_at_;
  const bool reached = std::any_of(planned_.begin(), planned_.end(), [](uint8_t planned) { return planned != 0; });
  std::vector<NamedParameter> current;
  if (options_.current_parameters) current = options_.current_parameters();
  for (uint32_t i = 0; i < parameters_.size(); ++i) {
    // In an accumulation a parameter counts as ready if any of its backwards used it.
    const bool ready = planned_[i] || used_[i] || joined_;
    mine.ready.push_back(ready);
    if (ready || !plan || !failure.empty()) continue;
    const auto successor = std::find_if(current.begin(), current.end(), [&](const NamedParameter& each) {
      return each.name == parameters_[i].name && !each.tensor.is_same(parameters_[i].tensor);
    });
    if (successor == current.end()) {
      mine.causes.emplace(i, find_cause(parameters_[i].name, parameters_[i].tensor, *plan, reached));
      continue;
    }
    Cause cause;
    cause.kind = CauseKind::Replaced;
    const size_t dot = parameters_[i].name.rfind('.');
    cause.module = dot == std::string::npos ? "" : parameters_[i].name.substr(0, dot);
    const autograd::AutogradMeta* known = autograd::meta(successor->tensor);
    cause.text = fmt::format("`{}` exists twice: the wrapper holds the object that was there when it was made",
                             parameters_[i].name);
    if (known && known->registered_at.line() != 0) {
      set_place(cause, known->registered_at);
      cause.text += ", the module holds one registered at " + to_string(known->registered_at);
    }
    mine.causes.emplace(i, std::move(cause));
  }
  return mine;
}

void Reducer::report(const autograd::Plan* plan, const std::string& failure) {
  std::exception_ptr error;
  try {
    if (!outcome_.hooks.empty() && outcome_.failed == 0) {
      std::string message =
          "the communication hook does not give the mean of the ranks' gradients. The gradients of this "
          "backward were cleared on every rank.\n";
      for (const Verdict& verdict : outcome_.hooks)
        message += "\n  " + verdict.message;
      error = std::make_exception_ptr(ReductionError(message, outcome_.hooks, backward_where_));
    } else {
      std::vector<RankReport> reports;
      for (const std::string& text : exchange(encode(own_report(plan, failure)), "error report"))
        reports.push_back(decode_report(text));
      ErrorContext context;
      context.find_unused_parameters = options_.find_unused_parameters;
      context.failed = outcome_.failed > 0;
      context.same_round = outcome_.same_round;
      context.changed = outcome_.changed > 0;
      context.expected = expected_;
      for (const Slot& slot : slots_)
        context.buckets.push_back(slot.bucket);
      context.where = backward_where_;
      error = std::make_exception_ptr(compose_error(reports, parameters_, context));
    }
  } catch (const DistError&) {
    broken_ = true;
    error = std::current_exception();
  }
  raise(error);
}

void Reducer::raise(std::exception_ptr error) {
  if (options_.report_at == ReducerOptions::ReportAt::NextForward && outcome_.failed == 0 && !broken_) {
    settle_all();
    reset();
    kept_back_ = error;
    return;
  }
  reset();
  clear_gradients();
  std::rethrow_exception(error);
}

void Reducer::look_at_loss(const autograd::Plan& plan) {
  device_losses_.clear();
  non_finite_loss_ = false;
  for (const Tensor& root : plan.roots()) {
    if (root.numel() != 1) continue;
    if (root.device() != Device()) {
      device_losses_.push_back(view::alias(root));
    } else {
      non_finite_loss_ = non_finite_loss_ || !std::isfinite(detail::element_as_double(root, 0));
    }
  }
  if (non_finite_loss_) blame_loss(plan.where());
}

void Reducer::blame_loss(SourceLocation where) {
  non_finite_cause_ = {};
  non_finite_cause_.kind = CauseKind::NonFinite;
  set_place(non_finite_cause_, where);
  non_finite_cause_.text = fmt::format("the loss of the backward at {} is not finite", to_string(where));
}

void Reducer::on_non_finite(const char* op, SourceLocation where) {
  non_finite_cause_.op = op;
  set_place(non_finite_cause_, where);
  non_finite_cause_.text +=
      fmt::format("; the first operation whose derivative is not finite is {} at {}", op, to_string(where));
}

void Reducer::check_hook_result(Bucket& bucket, uint32_t index) {
  if (!hook_ || !options_.diagnosis) return;
  const Payload& payload = bucket.payload;
  const double expected = payload.mean(Word::Probe);
  const double found = payload.probe();
  const int size = group_->size();
  Verdict verdict;
  verdict.kind = "hook_result";
  verdict.iteration = round_;
  for (int r = 0; r < size; ++r)
    verdict.ranks.push_back(r);
  set_place(verdict.cause, backward_where_);
  verdict.cause.op = hook_->name();
  const auto add_parameters = [&](const auto& wanted) {
    for (const uint32_t parameter : bucket.layout.parameters) {
      if (!wanted(slots_[parameter].view)) continue;
      verdict.parameters.push_back({parameters_[parameter].name,
                                    static_cast<int64_t>(parameters_[parameter].tensor.nbytes()),
                                    verdict.ranks,
                                    {}});
    }
  };
  if (!std::isfinite(found)) {
    if (payload.count(Word::NonFinite, size) > 0) return;  // it was so before
    verdict.cause.kind = CauseKind::Overflow;
    verdict.cause.text = fmt::format(
        "finite on every rank before the communication hook `{}`, not after it: its range was exceeded", hook_->name());
    verdict.advice =
        "scale the loss down, clip gradients before they are sent, or use bf16_compress_hook (the range of float32) "
        "instead of fp16";
    add_parameters([](const Tensor& gradient) { return kernels::has_non_finite(detail::on_host(gradient)); });
  } else {
    // Only a statement about sizes: lossy hooks may be far off, but not by exactly the number of ranks.
    const double norm = std::exp2(payload.mean(Word::Norm) / 2);
    if (size == 1 || std::abs(expected) < 0.01 * norm || norm == 0) return;
    const double ratio = found / expected;
    const bool sum = std::abs(ratio - size) < 1e-3 * size;
    const bool divided_twice = std::abs(ratio * size - 1) < 1e-3;
    if (!sum && !divided_twice) return;
    verdict.cause.kind = CauseKind::WrongScale;
    verdict.cause.text = sum ? fmt::format(
                                   "the hook `{}` gives {} x the mean of the ranks' gradients: a sum that was "
                                   "not divided by the world size",
                                   hook_->name(), size)
                             : fmt::format(
                                   "the hook `{}` gives 1/{} of the mean of the ranks' gradients: it was "
                                   "divided twice",
                                   hook_->name(), size);
    verdict.advice = sum ? "use ReduceOp::Avg, or divide by the world size (before the sum, for half types)"
                         : "divide once: ReduceOp::Avg divides already";
    add_parameters([](const Tensor&) { return true; });
  }
  verdict.message = fmt::format("bucket {} of DDP({}): {}\n    fix:   {}", index, options_.module_name,
                                verdict.cause.text, verdict.advice);
  outcome_.hooks.push_back(std::move(verdict));
}

}  // namespace brigade::dist
