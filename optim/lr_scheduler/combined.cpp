// SequentialLR runs one schedule after the other, ChainedScheduler all of them at each step.
#include <brigade/optim/lr_scheduler/combined.h>

#include <algorithm>

namespace brigade::optim {
namespace {

using Schedulers = std::vector<std::shared_ptr<LRScheduler>>;

void check(const char* who, const Schedulers& schedulers, const Optimizer* optimizer, SourceLocation where) {
  for (size_t i = 0; i < schedulers.size(); ++i) {
    if (!schedulers[i]) throw ValueError(where, "{}: scheduler {} is a null pointer", who, i);
    if (&schedulers[i]->optimizer() == optimizer) continue;
    throw ValueError(
        where,
        "{} expects all schedulers to belong to the same optimizer, but got {} at index {}, which is of another one",
        who, schedulers[i]->name(), i);
  }
}

LRScheduler& first_of(const char* who, const Schedulers& schedulers, SourceLocation where) {
  if (schedulers.empty()) throw ValueError(where, "{} expects at least one scheduler, but got no scheduler", who);
  check(who, {schedulers.front()}, schedulers.front() ? &schedulers.front()->optimizer() : nullptr, where);
  return *schedulers.front();
}

}  // namespace

SequentialLR::SequentialLR(Optimizer& optimizer, Schedulers schedulers, std::vector<int64_t> milestones,
                           SourceLocation made_at)
    : LRScheduler(optimizer), schedulers_(std::move(schedulers)), milestones_(std::move(milestones)) {
  const SourceLocation where = detail::users_line(made_at);
  first_of("SequentialLR", schedulers_, where);
  check("SequentialLR", schedulers_, &optimizer, where);
  for (size_t i = 0; i < schedulers_.size(); ++i) {
    const LRScheduler* scheduler = schedulers_[i].get();
    if (dynamic_cast<const SequentialLR*>(scheduler) ||
        (i > 0 && dynamic_cast<const ChainedScheduler*>(scheduler) != nullptr)) {
      throw ValueError(where,
                       "SequentialLR: the {} at index {} cannot begin in the middle of another "
                       "schedule; put its own schedulers here",
                       scheduler->name(), i);
    }
  }
  if (milestones_.size() + 1 != schedulers_.size()) {
    throw ValueError(
        where,
        "SequentialLR: Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone "
        "points, but got number of schedulers {} and the number of milestones to be equal to {}",
        schedulers_.size(), milestones_.size());
  }
  if (!std::is_sorted(milestones_.begin(), milestones_.end()))
    throw ValueError(where, "SequentialLR: milestones must be in ascending order");
  // Undo the changes that the schedulers made on construction.
  set_lr(base_lrs_);
  undo();
  last_epoch_ = 0;
  LRScheduler& running = *schedulers_[running_at(0)];
  running.start(made_at);
  last_lr_ = running.get_last_lr();
}

size_t SequentialLR::running_at(int64_t epoch) const {
  return static_cast<size_t>(std::upper_bound(milestones_.begin(), milestones_.end(), epoch) - milestones_.begin());
}

void SequentialLR::step(SourceLocation where) {
  ++last_epoch_;
  const size_t now = running_at(last_epoch_);
  LRScheduler& running = *schedulers_[now];
  if (now > 0 && milestones_[now - 1] == last_epoch_) {
    running.restart(where);
  } else {
    running.step(where);
  }
  last_lr_ = running.get_last_lr();
}

void SequentialLR::undo() {
  for (const auto& scheduler : schedulers_)
    scheduler->undo();
}

void SequentialLR::visit(const SchedulerVisitor& visitor) {
  LRScheduler::visit(visitor);
  visitor("milestones", milestones_);
  for (size_t i = 0; i < schedulers_.size(); ++i)
    schedulers_[i]->visit(visitor.under(std::to_string(i) + "."));
}

ChainedScheduler::ChainedScheduler(Schedulers schedulers, SourceLocation where)
    : LRScheduler(first_of("ChainedScheduler", schedulers, detail::users_line(where)).optimizer()),
      schedulers_(std::move(schedulers)) {
  check("ChainedScheduler", schedulers_, &optimizer(), detail::users_line(where));
  last_epoch_ = 0;
}

void ChainedScheduler::step(SourceLocation where) {
  ++last_epoch_;
  for (const auto& scheduler : schedulers_)
    scheduler->step(where);
  last_lr_ = current_lr();
}

void ChainedScheduler::undo() {
  LRScheduler::undo();
  for (const auto& scheduler : schedulers_)
    scheduler->undo();
}

void ChainedScheduler::visit(const SchedulerVisitor& visitor) {
  LRScheduler::visit(visitor);
  for (size_t i = 0; i < schedulers_.size(); ++i)
    schedulers_[i]->visit(visitor.under(std::to_string(i) + "."));
}

}  // namespace brigade::optim
