// Composes the error of all ranks after a backward whose gradients cannot be trusted. Only this report and advice
// (diagnosis/advice.h) exchange more than the payload; all ranks do so together, since all have read the same words.
#pragma once

#include <brigade/dist/diagnosis/report.h>
#include <brigade/dist/errors/named_parameter.h>
#include <brigade/dist/observers/wrapper_log.h>
#include <brigade/dist/reducer/observer.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace brigade::dist {

class ErrorReporter final : public ReducerObserver {
 public:
  // `diagnosis`: a tape is kept, and errors say when each missing parameter was used before.
  ErrorReporter(bool diagnosis, std::shared_ptr<WrapperLog> log) noexcept
      : diagnosis_(diagnosis), log_(std::move(log)) {}
  // Advice uses the words of Fabric, which has made the wrapper.
  void speak_for_fabric() noexcept { by_fabric_ = true; }

  // By rank and parameter: whether it was used in the latest reduced backward. Empty unless its error has exchanged it.
  const std::vector<std::vector<bool>>& used_by_rank() const noexcept { return used_by_rank_; }

  bool is_meant(std::span<const NamedParameter> parameters, const TracedBackward& backward) const override {
    return was_cut_off(parameters, backward);
  }
  void on_finish(const Round& round) override;
  std::exception_ptr on_error(const Round& round, const TracedBackward* backward, const std::string& failure) override;

 private:
  RankReport own_report(const Round& round, const TracedBackward* backward, const std::string& failure) const;
  std::exception_ptr error_of_all(const Round& round, const RankReport& own);
  // Adds a backward to the history.
  void remember(const Round& round);

  bool diagnosis_;
  std::shared_ptr<WrapperLog> log_;
  bool by_fabric_ = false;
  std::vector<UseHistory> used_;  // per parameter, by this rank
  std::vector<std::vector<bool>> used_by_rank_;
};

}  // namespace brigade::dist
