// What the reducer advises: warnings and notes that do not stop training, and what only they need
// to know.
#pragma once

#include <brigade/dist/diagnosis/advisories.h>
#include <brigade/dist/diagnosis/outlier.h>
#include <brigade/dist/diagnosis/slow_rank.h>
#include <brigade/dist/reducer/options.h>

namespace brigade::dist {

class Accumulation;
class Buckets;
class Round;

class Advisor {
 public:
  // All of these outlive it.
  Advisor(const ReducerSetup& setup, const Buckets& buckets, const Accumulation& accumulation)
      : setup_(setup), buckets_(buckets), accumulation_(accumulation) {}

  // After a backward whose gradients are final. Exchanges more where the payload gave reason to
  // look: all ranks come here together, since all have read the same words.
  void advise(Round& round);
  // In backward, at a gradient that gathered under no_sync.
  void warn_of_early_write(const Round& round, uint32_t parameter);
  // The gradients of the backward before were not finite either.
  bool was_non_finite() const noexcept { return was_non_finite_; }

  Advisories& advisories() noexcept { return advisories_; }
  const Advisories& advisories() const noexcept { return advisories_; }

 private:
  void advise_on_needless_option(const Round& round);
  void advise_on_non_finite(Round& round);
  void advise_on_slow_rank(const Round& round);
  void advise_on_outlier(const Round& round);
  void advise_on_batches(const Round& round);
  void add(const std::string& key, Verdict verdict);

  const ReducerSetup& setup_;
  const Buckets& buckets_;
  const Accumulation& accumulation_;
  Advisories advisories_;
  SlowRankStreak slow_;
  OutlierStreak outlier_;
  // Who it is takes an exchange: a few times only, where the machine is uneven by itself.
  int slow_looks_ = 0;
  int outlier_looks_ = 0;
  int batch_looks_ = 0;
  bool some_unused_ = false;
  bool was_non_finite_ = false;
};

}  // namespace brigade::dist
