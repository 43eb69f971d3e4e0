// The autocast that the forward of the latest backward began in: where ranks differ in it for long, they average gradients of
// another precision.
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
  // Looks at the autocast of the devices that these are on: that of another one changes nothing here.
  explicit AutocastModes(std::span<const NamedParameter> parameters);

  // Before a forward of the wrapper that a backward may follow, after `backwards` of them.
  void look(uint64_t backwards);
  // What was seen before the latest of as many backwards, for the ranks to compare; 0 where nothing was.
  uint64_t digest(uint64_t backwards) const noexcept;
  AutocastOnRank seen(uint64_t backwards) const { return seen_.latest(backwards); }
  // The ranks have compared, after as many backwards. A verdict where they have differed in the same way in several
  // backwards in a row: a rank may take one batch in full precision, because the other overflows, or ranks take turns.
  std::optional<Verdict> compare(std::span<const StepOnRank> steps, uint64_t backwards);

 private:
  std::vector<DeviceType> devices_;
  BeforeBackward<AutocastOnRank> seen_;
  uint64_t differed_at_ = 0;  // the latest backward in which they did
  uint64_t how_ = 0;          // a digest of what each had then
  int in_a_row_ = 0;
};

}  // namespace brigade::dist
