// Which layers of a module train and which evaluate, in the forward that the latest backward came from: where ranks differ
// in it, one of them has not called train() since its evaluation.
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
  // Of the layers that do something else in an evaluation: batch norms, dropouts, attention that drops weights.
  explicit LayerModes(const nn::Module& module);

  // Before a forward that a backward may follow, after `backwards` of them.
  void look(uint64_t backwards);
  // What was seen before the latest of as many backwards, for the ranks to compare; 0 where nothing was, and where no layer
  // cares.
  uint64_t digest(uint64_t backwards) const noexcept;
  bool are_known(uint64_t backwards) const noexcept { return !seen(backwards).empty(); }
  // Paths of those that evaluate.
  std::vector<std::string> evaluating(uint64_t backwards) const;

 private:
  void collect(const nn::Module& module);

  using Trains = std::vector<uint8_t>;  // by layer
  const Trains& seen(uint64_t backwards) const noexcept { return seen_.latest(backwards); }

  std::vector<std::shared_ptr<const nn::Module>> layers_;
  BeforeBackward<Trains> seen_;
};

}  // namespace brigade::dist
