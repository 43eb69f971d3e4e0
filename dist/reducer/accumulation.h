// Tracks what is local to this rank since the last reduction: gradients accumulated under no_sync, and the backwards
// that this rank has observed.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/dist/errors/named_parameter.h>

#include <cstdint>
#include <span>
#include <vector>

namespace brigade::autograd {
struct GradStamp;
}

namespace brigade::dist {

// What happened to a parameter's gradient since it was last averaged.
struct LocalGradient {
  uint32_t backwards = 0;  // number that added to it under no_sync
  SourceLocation where;    // the latest of them
  // autograd::writes_so_far() when the last reduction ended, and when accumulation began.
  uint64_t writes_at_reduction = 0;
  uint64_t writes_at_accumulation = 0;
  uint32_t version_at_reduction = 0;  // of the gradient's memory, when the last reduction ended
};

class Accumulation {
 public:
  explicit Accumulation(size_t parameters) : used_(parameters), local_(parameters) {}

  // While the depth is above zero, backward accumulates locally.
  void enter_no_sync(SourceLocation where) noexcept {
    ++no_sync_depth_;
    no_sync_where_ = where;
  }
  void leave_no_sync() noexcept { --no_sync_depth_; }
  bool syncs() const noexcept { return no_sync_depth_ == 0; }
  SourceLocation no_sync_where() const noexcept { return no_sync_where_; }

  // Called when backward `number` of the thread begins and reaches a parameter.
  void hear(uint64_t number);
  // Remembers only the last few.
  bool has_heard(uint64_t number) const noexcept;
  uint64_t last_heard() const noexcept { return heard_.empty() ? 0 : heard_.back(); }

  // Whether the running backward adds to the local gradients.
  void gather(bool on) noexcept { gathers_ = on; }
  bool gathers() const noexcept { return gathers_; }
  void add(uint32_t parameter, bool defined, const autograd::GradStamp& stamp);

  // Whether a backward has used the parameter since the last reduction.
  bool used(uint32_t parameter) const { return used_[parameter] != 0; }
  // Called when the gradient was cleared.
  void forget(uint32_t parameter) { used_[parameter] = 0; }
  void forget_all() noexcept;
  const LocalGradient& local(uint32_t parameter) const noexcept { return local_[parameter]; }
  // The largest number of local backwards in any gradient.
  uint32_t local_backwards() const noexcept;
  // Called when all gradients were averaged: nothing is local.
  void all_reduced(std::span<const NamedParameter> parameters);
  // Called when another reducer has averaged that parameter.
  void reduced(uint32_t parameter, const Tensor& leaf) noexcept;
  // Whether gradients of a backward are still local.
  bool has_gathered(std::span<const NamedParameter> parameters) const;
  // Marks all writes to gradients so far as the reducer's own.
  void pass_over_writes(std::span<const NamedParameter> parameters);

 private:
  int no_sync_depth_ = 0;
  SourceLocation no_sync_where_;
  bool gathers_ = false;
  std::vector<uint8_t> used_;
  std::vector<LocalGradient> local_;
  std::vector<uint64_t> heard_;  // numbers of the latest backwards
};

}  // namespace brigade::dist
