// Compares, over the ranks, the autocast state in which the forward of the latest backward began. Ranks that keep
// differing average gradients of different precision.
#pragma once

#include <brigade/core/device.h>
#include <brigade/dist/checks/before_backward.h>
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/errors/named_parameter.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace brigade::dist {

class AutocastModes {
 public:
  // Follows the autocast state of the device types that the parameters are on; that of other devices has no effect
  // here.
  explicit AutocastModes(std::span<const NamedParameter> parameters);

  // Called before a forward of the wrapper that a backward may follow; `backwards` is the number of backwards so far.
  void look(uint64_t backwards);
  // Digest of the state seen before the latest of `backwards` backwards, for the ranks to compare; 0 if none was
  // seen.
  uint64_t digest(uint64_t backwards) const noexcept;
  AutocastOnRank seen(uint64_t backwards) const { return seen_.latest(backwards); }
  // Called after the ranks compared their steps. Returns a verdict only when they differ in the same way in several
  // backwards in a row: a rank may run one batch in full precision to avoid an overflow, or ranks may take turns.
  std::optional<Verdict> compare(std::span<const StepOnRank> steps, uint64_t backwards);

 private:
  std::vector<DeviceType> devices_;
  BeforeBackward<AutocastOnRank> seen_;
  uint64_t differed_at_ = 0;  // the latest backward in which the ranks differed
  uint64_t how_ = 0;          // digest of each rank's state at that backward
  int in_a_row_ = 0;
};

}  // namespace brigade::dist
