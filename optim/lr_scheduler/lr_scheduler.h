// LRScheduler: the base class of learning rate schedules. Values match torch.optim.lr_scheduler bit for bit: most
// schedules multiply the current rate of a group, so that several of them can work on one optimizer.
//
//   optim::SGD optimizer(net->parameters(), {.lr = 0.1});
//   optim::CosineAnnealingLR scheduler(optimizer, 100);
//   for (...) { ...; optimizer.step(); scheduler.step(); }
//
// A scheduler refers to its optimizer, which must outlive it, and sets the rates of its groups: once on construction,
// then at each step(). All schedulers of one optimizer start from the same rates, Optimizer::initial_lr. An error names
// the schedule, and the line that made it or called its step().
#pragma once

#include <brigade/optim/lr_scheduler/state.h>
#include <brigade/optim/optimizer.h>

#include <string>
#include <vector>

namespace brigade::optim {

class LRScheduler {
 public:
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;
  virtual ~LRScheduler() = default;

  // Advances by one epoch, or any other unit of the caller; call it after the optimizer's step. Throws ValueError when
  // the optimizer has gained groups since the scheduler was made. Warns, once per line, when a loss scaler skipped
  // every step requested of the optimizer since the last call: then the schedule runs ahead of the weights.
  virtual void step(SourceLocation where = SourceLocation::current());
  // Steps since the scheduler was made (in a SequentialLR: since it took over).
  int64_t last_epoch() const noexcept { return last_epoch_; }
  // The rates that the last step set, one per group.
  const std::vector<double>& get_last_lr() const noexcept { return last_lr_; }
  Optimizer& optimizer() const noexcept { return *optimizer_; }
  // "StepLR"
  std::string name() const;

  SchedulerState state_dict() const;
  // Options are part of the state. The optimizer's rates are not, they are in the optimizer's state: load both. Throws
  // a ValueError that names the entries that are missing, left over, or of another kind; then nothing has been changed.
  void load_state_dict(const SchedulerState& state, SourceLocation where = SourceLocation::current());

 protected:
  // Throws ValueError for an optimizer without learning rates.
  explicit LRScheduler(Optimizer& optimizer);
  // Sets the rates of epoch 0. The constructor of each schedule ends with it.
  void start(SourceLocation where);

  // The rates of epoch last_epoch_, one per group, computed from the current rates of the groups.
  virtual std::vector<double> next_lr() = 0;
  // The same, computed from the epoch alone, if the schedule has a closed form.
  virtual std::vector<double> closed_form_lr() { return next_lr(); }
  // Visits the saved members. Overridden by the schedules that have more members than this class.
  virtual void visit(const SchedulerVisitor& visitor);
  // Undoes the step of start().
  virtual void undo() { --last_epoch_; }
  // Starts again at epoch 0, in the middle of a SequentialLR.
  void restart(SourceLocation where);

  void look_for_skipped_step(SourceLocation where);
  std::vector<double> current_lr() const;
  // Each group's rate times `factor`.
  std::vector<double> scaled_lr(double factor) const;
  // f(base rate) for each group.
  template <class F>
  std::vector<double> from_base(F&& f) const {
    std::vector<double> result;
    result.reserve(base_lrs_.size());
    for (const double base : base_lrs_)
      result.push_back(f(base));
    return result;
  }
  void set_lr(const std::vector<double>& rates);

  int64_t last_epoch_ = -1;
  bool is_initial_ = false;   // within start()
  SourceLocation called_at_;  // the line of the current step, for errors of next_lr()
  std::vector<double> base_lrs_, last_lr_;

 private:
  friend class SequentialLR;
  friend class ChainedScheduler;
  Optimizer* optimizer_;
  uint64_t taken_before_ = 0, skipped_before_ = 0;  // the optimizer's steps at the last call
};

namespace detail {
// Expands one number for all groups, or one for each, to one per group. Throws ValueError "OneCycleLR: max_lr must have
// the same length as ...".
std::vector<double> per_group(const char* schedule, const char* what, const std::vector<double>& values, size_t groups,
                              SourceLocation where);
// Throws ValueError "StepLR: Expected positive integer step_size, but got 0".
void check_positive(const char* schedule, const char* what, int64_t value, SourceLocation where);
// The line for an error; none if std::make_shared made the schedule, because that line is not the user's.
SourceLocation users_line(SourceLocation where);
}  // namespace detail

}  // namespace brigade::optim
