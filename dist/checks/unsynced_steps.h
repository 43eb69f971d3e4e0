// Optimizer steps whose gradients were never averaged.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/core/error.h>
#include <brigade/core/tensor.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

namespace brigade::dist {

// --- Counts optimizer steps whose gradients and parameters were never averaged.
//
// A loop that averages its parameters once in many steps (local SGD) looks the same until its first average. The
// warning therefore waits until that average must have happened: until a model is saved, training ends, or very many
// steps have run.

class UnsyncedSteps {
 public:
  // True once averaging was seen or the warning was given: counting has stopped, and the parameters are released.
  bool is_over() const noexcept { return is_over_; }
  void end() noexcept;

  // Counts one step. Returns true when there are so many that an average would have happened by now.
  bool add(const std::string& optimizer, SourceLocation where);
  bool are_many() const noexcept;
  // Whether there are enough steps for a warning when training ends.
  bool are_enough() const noexcept;

  // Records the version in which the latest step leaves the parameter.
  void leave(const Tensor& parameter, uint32_t version) {
    left_.insert_or_assign(parameter.impl(), Left{parameter, version});
  }
  // Whether is(parameter, its recorded version) holds for any parameter.
  template <class Is>
  bool any_left(Is&& is) const {
    return std::ranges::any_of(left_, [&](const auto& each) { return is(each.second.parameter, each.second.version); });
  }

  // "SGD.step() at train.cpp:5": the second step, since the first may be a smoke test.
  const std::string& second() const noexcept { return second_; }
  // "1000 steps" when are_many(), otherwise `all`.
  std::string how_many(const std::string& all) const;

 private:
  uint64_t count_ = 0;
  bool is_over_ = false;
  std::string second_;
  struct Left {
    Tensor parameter;  // kept alive: the user may have released it
    uint32_t version;
  };
  std::unordered_map<const TensorImpl*, Left> left_;
};

// --- Detects optimizer steps with gradients that a communication hook has left local, while nothing averages the
// parameters.

class LocalSteps {
 public:
  // `title`: the wrapper's title; `hook`: the hook's name.
  LocalSteps(std::string title, std::string hook) : title_(std::move(title)), hook_(std::move(hook)) {}

  // Called before a step with gradients that no collective has averaged.
  void look_at(const autograd::Update& update);
  // Warns, once, unless something has averaged parameters or gradients.
  void tell();

 private:
  // Whether anything but the steps seen here has written to a parameter: an average, or what may have been one.
  bool is_written() const;
  bool is_averaged_by_hand(const autograd::Update& update) const;

  std::string title_, hook_;
  UnsyncedSteps steps_;
};

}  // namespace brigade::dist
