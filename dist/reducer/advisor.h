// The warnings and notes of the reducer, which do not stop training. Those given at the end of a backward are defined
// in dist/diagnosis/advice.h.
#pragma once

#include <brigade/dist/diagnosis/advice.h>
#include <brigade/dist/diagnosis/advisories.h>
#include <brigade/dist/reducer/options.h>

#include <string>
#include <unordered_map>

namespace brigade::dist {

class Accumulation;
class Buckets;
class Round;

class Advisor {
 public:
  // The arguments must outlive this object.
  Advisor(const ReducerSetup& setup, const Buckets& buckets, const Accumulation& accumulation);

  // Called after a backward whose gradients are final. Exchanges more if the payload gave reason to: all ranks do so
  // together, since all have read the same words. After all advice has run, rethrows the first exception.
  void advise(const Round& round);
  // Called in backward for a gradient accumulated under no_sync: warns if it was edited before its reduction.
  void warn_of_early_write(const Round& round, uint32_t parameter);
  // Called before a backward: warns, once, if the user has kept a gradient that its parameter no longer holds and
  // that is a view of a bucket this backward will overwrite.
  void warn_of_kept_gradient(uint32_t parameter, SourceLocation backward);
  // Called after a backward: warns about hooks that leave nothing of this rank's gradient while other ranks have
  // some.
  void warn_of_emptied(const Round& round);
  // Number of consecutive backwards, up to the latest, whose gradients were not finite.
  int non_finite_in_a_row() const noexcept { return non_finite_in_a_row_; }

  Advisories& advisories() noexcept { return advisories_; }
  const Advisories& advisories() const noexcept { return advisories_; }

 private:
  const ReducerSetup& setup_;
  const Buckets& buckets_;
  const Accumulation& accumulation_;
  Advisories advisories_;
  int non_finite_in_a_row_ = 0;
  bool told_of_kept_ = false;
  // Per parameter: the latest backward in which a hook left nothing of its gradient, and how many in a row did.
  struct Emptied {
    uint64_t latest = 0;
    int in_a_row = 0;
  };
  std::unordered_map<int64_t, Emptied> emptied_;  // by position
};

}  // namespace brigade::dist
