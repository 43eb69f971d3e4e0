// Which layers of a module were in train and which in eval mode in the forward of the latest backward. If ranks
// differ, one of them has not called train() since its evaluation.
#pragma once

#include <brigade/dist/checks/before_backward.h>
#include <brigade/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace brigade::dist {

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
