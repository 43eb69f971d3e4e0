// A reference-counted pointer whose count lives in the object: one word, one allocation, no control
// block.
//
// T must offer `void retain() const noexcept` and `void release() const noexcept`; RefCounted<T>
// provides both.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace brigade {

template <class T>
class IntrusivePtr {
 public:
  IntrusivePtr() noexcept = default;
  IntrusivePtr(std::nullptr_t) noexcept {}
  explicit IntrusivePtr(T* pointer) noexcept : pointer_(pointer) {
    if (pointer_) pointer_->retain();
  }
  IntrusivePtr(const IntrusivePtr& other) noexcept : IntrusivePtr(other.pointer_) {}
  IntrusivePtr(IntrusivePtr&& other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> IntrusivePtr(const IntrusivePtr<U>& other)
  noexcept : IntrusivePtr(static_cast<T*>(other.get())) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> IntrusivePtr(IntrusivePtr<U>&& other)
  noexcept : pointer_(other.detach()) {}
  IntrusivePtr& operator=(IntrusivePtr other) noexcept {
    std::swap(pointer_, other.pointer_);
    return *this;
  }
  ~IntrusivePtr() {
    if (pointer_) pointer_->release();
  }

  // Takes over a reference that was counted already.
  static IntrusivePtr adopt(T* pointer) noexcept {
    IntrusivePtr result;
    result.pointer_ = pointer;
    return result;
  }

  T* get() const noexcept { return pointer_; }
  T* operator->() const noexcept { return pointer_; }
  T& operator*() const noexcept { return *pointer_; }
  explicit operator bool() const noexcept { return pointer_ != nullptr; }
  bool operator==(const IntrusivePtr& other) const noexcept = default;
  void reset() noexcept { *this = IntrusivePtr(); }

  // Gives up ownership without dropping the count.
  T* detach() noexcept { return std::exchange(pointer_, nullptr); }

 private:
  T* pointer_ = nullptr;
};

// T starts with a count of 0, and has retain_new() for its first reference, which no other thread can see.
template <class T, class... Args>
[[gnu::always_inline]] inline IntrusivePtr<T> make_intrusive(Args&&... args) {
  T* const made = new T(std::forward<Args>(args)...);
  made->retain_new();
  return IntrusivePtr<T>::adopt(made);
}

// Base that carries the count. `Derived` is deleted when the last reference goes.
template <class Derived>
class RefCounted {
 public:
  RefCounted() noexcept = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  void retain_new() const noexcept { count_.store(1, std::memory_order_relaxed); }
  void release() const noexcept {
    // An object with a single owner skips the locked instruction: no other thread can add a reference at the same time.
    if (count_.load(std::memory_order_acquire) == 1 || count_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      delete static_cast<const Derived*>(this);
    }
  }
  uint32_t use_count() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  mutable std::atomic<uint32_t> count_{0};
};

}  // namespace brigade
