// A backward whose records the tape may still hold.
#pragma once

#include <brigade/autograd/listener.h>

#include <cstdint>
#include <span>

namespace brigade::dist {

// One that is running, or one that has ended.
class TracedBackward {
 public:
  explicit TracedBackward(const autograd::Plan& plan)
      : roots_(plan.roots()), where_(plan.where()), number_(plan.number()) {}
  // Plan::where and Plan::number.
  TracedBackward(SourceLocation where, uint64_t number) : where_(where), number_(number) {}

  SourceLocation where() const noexcept { return where_; }
  bool has_ended() const noexcept { return roots_.empty(); }
  std::span<const Tensor> roots() const noexcept { return roots_; }
  uint64_t number() const noexcept { return number_; }

 private:
  std::span<const Tensor> roots_;
  SourceLocation where_;
  uint64_t number_;
};

}  // namespace brigade::dist
