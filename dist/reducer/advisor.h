// What the reducer advises: warnings and notes that do not stop training. At the end of a backward
// they are those of dist/diagnosis/advice.h.
#pragma once

#include <brigade/dist/diagnosis/advice.h>
#include <brigade/dist/diagnosis/advisories.h>
#include <brigade/dist/reducer/options.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace brigade::dist {

class Accumulation;
class Buckets;
class Round;

class Advisor {
 public:
  // All of these outlive it. Throws ValueError when the maker of some advice makes none.
  Advisor(const ReducerSetup& setup, const Buckets& buckets, const Accumulation& accumulation);

  // After a backward whose gradients are final. Exchanges more where the payload gave reason to
  // look: all ranks come here together, since all have read the same words. Rethrows the first
  // exception of an advice when all were asked.
  void advise(const Round& round);
  // In backward, at a gradient that gathered under no_sync.
  void warn_of_early_write(const Round& round, uint32_t parameter);
  // Before a backward: a gradient that somebody kept, though its parameter has none any more, is a
  // view of a bucket that this backward is about to write to. Said once.
  void warn_of_kept_gradient(uint32_t parameter, SourceLocation backward);
  // After a backward: hooks that leave nothing of this rank's gradients, where others have some.
  void warn_of_emptied(const Round& round);
  // Backwards up to the latest whose gradients were not finite, one after another.
  int non_finite_in_a_row() const noexcept { return non_finite_in_a_row_; }

  Advisories& advisories() noexcept { return advisories_; }
  const Advisories& advisories() const noexcept { return advisories_; }

 private:
  struct Named {
    std::string name;
    std::unique_ptr<Advice> advice;
  };

  const ReducerSetup& setup_;
  const Buckets& buckets_;
  const Accumulation& accumulation_;
  Advisories advisories_;
  std::vector<Named> advice_;  // in the order of their names
  int non_finite_in_a_row_ = 0;
  bool told_of_kept_ = false;
  // Of a parameter: backwards in a row in which a hook has left nothing of its gradient, and the latest.
  struct Emptied {
    uint64_t latest = 0;
    int in_a_row = 0;
  };
  std::unordered_map<int64_t, Emptied> emptied_;  // by position
};

}  // namespace brigade::dist
