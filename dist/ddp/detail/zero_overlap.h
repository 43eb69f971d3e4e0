// ZeroRedundancyOptimizerBase::Overlap: tracks which parameters a backward has moved, and with which gradients and
// options.
#pragma once

#include <brigade/dist/ddp/zero_redundancy_optimizer.h>
#include <brigade/dist/groups/work.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace brigade::dist {

class Reducer;

// Follows the buckets of one reducer (BucketFollower).
class ZeroRedundancyOptimizerBase::Overlap {
 public:
  // Throws ValueError if the reducer manages none of the parameters.
  Overlap(ZeroRedundancyOptimizerBase& zero, const Reducer& reducer, SourceLocation where);

  // Throws ValueError if a planned parameter has moved and step() was not called since.
  void begins(std::span<const uint8_t> planned) const;
  // Steps this rank's share of the bucket, and starts the broadcast of each owner's share.
  void reduced(std::span<const uint32_t> bucket, SourceLocation backward);
  void ended(bool sound);
  // Restores what has moved in this backward, since some broadcasts may not have reached all ranks.
  void broken() noexcept;
  // Element i: whether parameter i has moved since the last call. Throws ValueError if a gradient or an option was
  // changed after the move.
  std::vector<uint8_t> take_moved(SourceLocation step);

 private:
  // The state of a parameter that has moved.
  struct Moved {
    bool had_gradient = false;
    uint64_t version = 0;  // of its gradient, when backward ended
    Tensor before = {};    // its values before it moved, while backward runs
  };
  void check_gradient(size_t parameter, const Tensor& gradient, const Moved& moved, SourceLocation step) const;

  ZeroRedundancyOptimizerBase& zero_;
  bool gradients_are_views_;
  std::vector<int64_t> position_;   // in the optimizer, of each of the reducer's parameters; -1: not there
  std::vector<std::string> names_;  // of the optimizer's parameters; "" if the reducer does not manage them
  std::map<size_t, Moved> moved_;   // by position in the optimizer
  std::string options_;             // with which they have moved
  uint64_t writes_ = 0;             // to gradients, when backward ended
  SourceLocation backward_;
  std::vector<WorkPtr> broadcasts_;
};

}  // namespace brigade::dist
