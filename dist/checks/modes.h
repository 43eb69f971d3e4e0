// The modes of a forward that ranks compare: the autocast state, and which layers train.
#pragma once

#include <brigade/core/device.h>
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/errors/named_parameter.h>
#include <brigade/nn/module.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace brigade::dist {

// --- The value observed at the last forward before a given backward, even if a later forward has observed another one.

template <class T>
class BeforeBackward {
 public:
  // Called at a forward that a backward may follow; `backwards` is the number of backwards so far.
  void see(T seen, uint64_t backwards) {
    if (backwards != backwards_) before_ = std::move(latest_);
    backwards_ = backwards;
    latest_ = std::move(seen);
  }
  // The value observed before the latest of `backwards` backwards; T() if there is none.
  const T& latest(uint64_t backwards) const noexcept { return backwards > backwards_ ? latest_ : before_; }

 private:
  // `latest_`: at the latest forward, after `backwards_` backwards. `before_`: at the last forward before the latest
  // of those backwards.
  T latest_ = {}, before_ = {};
  uint64_t backwards_ = 0;
};

// --- Compares, over the ranks, the autocast state in which the forward of the latest backward began. Ranks that keep
// differing average gradients of different precision.

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

// --- Which layers of a module were in train and which in eval mode in the forward of the latest backward. If ranks
// differ, one of them has not called train() since its evaluation.

class LayerModes {
 public:
  // Follows the layers that behave differently in eval mode: batch norms, dropouts, attention that drops weights.
  explicit LayerModes(const nn::Module& module);

  // Called before a forward that a backward may follow; `backwards` is the number of backwards so far.
  void look(uint64_t backwards);
  // Digest of the modes seen before the latest of `backwards` backwards, for the ranks to compare; 0 if none were
  // seen or no layer depends on its mode.
  uint64_t digest(uint64_t backwards) const noexcept;
  bool are_known(uint64_t backwards) const noexcept { return !seen(backwards).empty(); }
  // Paths of the layers in eval mode.
  std::vector<std::string> evaluating(uint64_t backwards) const;

 private:
  void collect(const nn::Module& module);

  using Trains = std::vector<uint8_t>;  // by layer
  const Trains& seen(uint64_t backwards) const noexcept { return seen_.latest(backwards); }

  std::vector<std::shared_ptr<const nn::Module>> layers_;
  BeforeBackward<Trains> seen_;
};

}  // namespace brigade::dist
