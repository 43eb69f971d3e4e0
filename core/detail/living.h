// Registry of the live instances of a class, on all threads.
#pragma once

#include <algorithm>
#include <mutex>
#include <vector>

namespace brigade::detail {

template <class T>
class Living {
 public:
  // Never destroyed: the objects may be static.
  static Living& all() {
    static auto* const one = new Living;
    return *one;
  }

  // Called by T's constructor, as its last action, and by its destructor, as the first.
  void add(T* object) {
    const std::lock_guard lock(mutex_);
    objects_.push_back(object);
  }
  void remove(const T* object) {
    const std::lock_guard lock(mutex_);
    std::erase(objects_, object);
  }
  // No object is destroyed during these calls.
  template <class F>
  void for_each(F&& f) {
    const std::lock_guard lock(mutex_);
    for (T* const object : objects_)
      f(*object);
  }
  // Whether is(object) holds for one of them.
  template <class Is>
  bool any(Is&& is) {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(objects_, [&](T* object) { return is(*object); });
  }

 private:
  std::mutex mutex_;
  std::vector<T*> objects_;
};

}  // namespace brigade::detail
