// Which layers of a module train and which evaluate, in the latest forward that a backward may follow: where ranks differ
// in it, one of them has not called train() since its evaluation.
#pragma once

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

  // Before a forward.
  void look();
  // What look() has seen; 0 before it, and where no layer cares. For the ranks to compare.
  uint64_t digest() const noexcept { return digest_; }
  bool are_known() const noexcept { return digest_ != 0; }
  // Paths of those that evaluate.
  std::vector<std::string> evaluating() const;

 private:
  void collect(const nn::Module& module);

  std::vector<std::shared_ptr<const nn::Module>> layers_;
  std::vector<uint8_t> train_;
  uint64_t digest_ = 0;
};

}  // namespace brigade::dist
