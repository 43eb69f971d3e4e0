// LocalSteps: steps by gradients that a communication hook has let stay local, while nothing averages the parameters.
//
// Local SGD averages them every so often: until it has done so for the first time, a loop that never will looks the same.
// So it is told when it must have happened: where a model is saved, at the end of the group, or after many steps.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/core/tensor.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

namespace brigade::dist {

class LocalSteps {
 public:
  // `title`: of the wrapper; `hook`: its name.
  LocalSteps(std::string title, std::string hook) : title_(std::move(title)), hook_(std::move(hook)) {}

  // Before a step by gradients that no collective has averaged.
  void look_at(const autograd::Update& update);
  // Warns, once, unless something has averaged parameters or gradients.
  void tell();

 private:
  // By something else than the steps seen here: an average, or what may have been one.
  bool is_written() const;
  bool is_averaged_by_hand(const autograd::Update& update) const;
  void end() noexcept;

  std::string title_, hook_;
  uint64_t count_ = 0;
  bool is_over_ = false;
  std::string second_;  // "SGD.step() at train.cpp:5"
  // Parameters, with the versions that the latest step leaves them.
  struct Left {
    Tensor parameter;
    uint32_t version;
  };
  std::unordered_map<const TensorImpl*, Left> left_;
};

}  // namespace brigade::dist
