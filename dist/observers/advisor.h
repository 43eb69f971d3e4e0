// The warnings and notes of the reducer, which do not stop training. Those given at the end of a backward are defined
// in dist/diagnosis/advice.h.
#pragma once

#include <brigade/dist/diagnosis/advice.h>
#include <brigade/dist/observers/norm_meter.h>
#include <brigade/dist/observers/recorder.h>
#include <brigade/dist/observers/wrapper_log.h>
#include <brigade/dist/reducer/observer.h>

#include <memory>
#include <unordered_map>
#include <vector>

namespace brigade::dist {

class Advisor final : public ReducerObserver {
 public:
  // Throws ValueError if a maker of advice returns null.
  Advisor(std::shared_ptr<WrapperLog> log, std::shared_ptr<const NormMeter> meter,
          std::shared_ptr<const Recorder> recorder);

  std::vector<SentWord*> words() override { return {statistics_.begin(), statistics_.end()}; }
  // Begins the statistics. Warns, once, if the user has kept a gradient that its parameter no longer holds and that is a view of a bucket
  // this backward will overwrite.
  void on_begin(const Round& round, const autograd::Plan* plan) override;
  // Warns if the gradient was edited before its reduction.
  void on_accumulated(const Round& round, uint32_t parameter) override;
  // Runs the advice. It exchanges more if the payload gave reason to: all ranks do so together, since all have read
  // the same words. After all advice has run, rethrows the first exception.
  void on_finish(const Round& round) override;

 private:
  void warn_of_kept_gradient(const Round& round, uint32_t parameter);
  // Warns about hooks that leave nothing of this rank's gradient while other ranks have some.
  void warn_of_emptied(const Round& round);

  std::shared_ptr<WrapperLog> log_;
  std::shared_ptr<const NormMeter> meter_;
  std::shared_ptr<const Recorder> recorder_;
  std::vector<NamedAdvice> advice_;
  std::vector<Statistic*> statistics_;  // of the advice
  bool told_of_kept_ = false;
  // Per parameter: the latest backward in which a hook left nothing of its gradient, and how many in a row did.
  struct Emptied {
    uint64_t latest = 0;
    int in_a_row = 0;
  };
  std::unordered_map<int64_t, Emptied> emptied_;  // by position
};

}  // namespace brigade::dist
