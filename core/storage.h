// A block of memory that tensors share, with the version counter that guards saved tensors.
#pragma once

#include <brigade/core/allocator.h>
#include <brigade/core/detail/block_pool.h>
#include <brigade/core/device.h>
#include <brigade/core/intrusive_ptr.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace brigade {

class Storage : public RefCounted<Storage>, public detail::Pooled {
 public:
  // Takes ownership of `allocation`. `home` identifies the owner of the memory (a process group
  // recognizes its buckets by it); the core never dereferences it.
  Storage(Allocation allocation, size_t bytes, Device device, const void* home = nullptr) noexcept
      : allocation_(allocation), bytes_(bytes), device_(device), home_(home) {}
  ~Storage() {
    if (allocation_.deleter) allocation_.deleter(allocation_.data, allocation_.context, bytes_);
  }

  void* data() const noexcept { return allocation_.data; }
  void* context() const noexcept { return allocation_.context; }
  size_t bytes() const noexcept { return bytes_; }
  Device device() const noexcept { return device_; }
  const void* home() const noexcept { return home_; }

  // Whether in-place writes to it are logged with their lines (autograd/write_log.h). Memory with a home is watched.
  bool is_watched() const noexcept { return watched_ || home_ != nullptr; }
  void watch() noexcept { watched_ = true; }

  // Counts in-place writes; views share it with their base.
  uint32_t version() const noexcept { return version_.load(std::memory_order_relaxed); }
  void bump_version() noexcept { version_.fetch_add(1, std::memory_order_relaxed); }

 private:
  Allocation allocation_;
  size_t bytes_;
  Device device_;
  const void* home_;
  std::atomic<uint32_t> version_{0};
  bool watched_ = false;
};

using StoragePtr = IntrusivePtr<Storage>;

}  // namespace brigade
