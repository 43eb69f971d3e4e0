// Counts optimizer steps whose gradients and parameters were never averaged.
//
// A loop that averages its parameters once in many steps (local SGD) looks the same until its first average. So the warning
// comes when that average must have happened: when a model is saved, when training ends, or after very many steps.
#pragma once

#include <brigade/core/error.h>
#include <brigade/core/tensor.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>

namespace brigade::dist {

class LoneSteps {
 public:
  // Something averages, or it was told: no more is counted, and the parameters are let go of.
  bool is_over() const noexcept { return is_over_; }
  void end() noexcept;

  // One more. True where there are so many that something would have averaged by now.
  bool add(const std::string& optimizer, SourceLocation where);
  bool are_many() const noexcept;
  // As many as are told where training ends.
  bool are_enough() const noexcept;

  // The latest of them leaves the parameter in this version.
  void leave(const Tensor& parameter, uint32_t version) {
    left_.insert_or_assign(parameter.impl(), Left{parameter, version});
  }
  // Whether is(parameter, the version it was left in) holds for one of them.
  template <class Is>
  bool any_left(Is&& is) const {
    return std::ranges::any_of(left_, [&](const auto& each) { return is(each.second.parameter, each.second.version); });
  }

  // "SGD.step() at train.cpp:5": the second of them, since the first may be to see that all works.
  const std::string& second() const noexcept { return second_; }
  // "1000 steps", or `all` where there are not so many.
  std::string how_many(const std::string& all) const;

 private:
  uint64_t count_ = 0;
  bool is_over_ = false;
  std::string second_;
  struct Left {
    Tensor parameter;  // which the user may have let go of
    uint32_t version;
  };
  std::unordered_map<const TensorImpl*, Left> left_;
};

}  // namespace brigade::dist
