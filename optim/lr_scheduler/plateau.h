// Lowers the learning rate when a metric has stopped improving.
#pragma once

#include <brigade/optim/lr_scheduler/state.h>
#include <brigade/optim/optimizer.h>

#include <vector>

namespace brigade::optim {

enum class PlateauMode : uint8_t { Min, Max };              // whether a smaller or a larger metric is better
enum class ThresholdMode : uint8_t { Relative, Absolute };  // threshold as a fraction of the best metric, or absolute

struct ReduceLROnPlateauOptions {
  PlateauMode mode = PlateauMode::Min;
  double factor = 0.1;      // new rate = rate * factor
  int64_t patience = 10;    // tolerated steps without a better metric
  double threshold = 1e-4;  // the smallest improvement that counts
  ThresholdMode threshold_mode = ThresholdMode::Relative;
  int64_t cooldown = 0;              // steps after a reduction in which bad epochs are not counted
  std::vector<double> min_lr = {0};  // one number for all groups, or one for each
  double eps = 1e-8;                 // a smaller change is not applied
};

// Not an LRScheduler: its step needs the metric. Throws ValueError "Factor should be < 1.0.", and for a min_lr that
// does not fit the groups.
class ReduceLROnPlateau {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options = {},
                             SourceLocation where = SourceLocation::current());

  // Call it after each validation. A NaN is never better.
  void step(double metric, SourceLocation where = SourceLocation::current());
  int64_t last_epoch() const noexcept { return last_epoch_; }
  const std::vector<double>& get_last_lr() const noexcept { return last_lr_; }
  // The best metric so far; infinite before the first step.
  double best() const noexcept { return best_; }

  SchedulerState state_dict() const;
  // Like LRScheduler::load_state_dict.
  void load_state_dict(const SchedulerState& state, SourceLocation where = SourceLocation::current());

 private:
  bool is_better(double metric) const;
  void visit(const SchedulerVisitor& visitor);

  Optimizer* optimizer_;
  ReduceLROnPlateauOptions options_;
  double best_;
  int64_t last_epoch_ = 0, bad_epochs_ = 0, cooldown_left_ = 0;
  std::vector<double> last_lr_;
};

}  // namespace brigade::optim
