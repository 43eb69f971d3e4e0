// Checks that a communication hook leaves the mean of the ranks' gradients, by a linear probe of them: the mean of the
// ranks' probes is the probe of the mean.
#pragma once

#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/observers/wrapper_log.h>
#include <brigade/dist/reducer/observer.h>

#include <memory>
#include <string>
#include <vector>

namespace brigade::dist {

class HookCheck final : public ReducerObserver {
 public:
  explicit HookCheck(std::shared_ptr<WrapperLog> log) noexcept : log_(std::move(log)) {}

  void on_begin(const Round& round, const autograd::Plan* plan) override;
  bool accepts(const Round& round, uint32_t bucket) override;
  void on_finish(const Round& round) override { keep_probes(round); }
  std::exception_ptr on_error(const Round& round, const TracedBackward* backward, const std::string& failure) override;

 private:
  HookResult result_of(const Round& round, uint32_t bucket) const;
  void keep_probes(const Round& round);

  std::shared_ptr<WrapperLog> log_;
  std::vector<double> probes_;       // per bucket
  std::vector<uint32_t> undecided_;  // buckets whose probe is too small to judge the hook's result
  std::vector<Verdict> wrong_;
};

}  // namespace brigade::dist
