// oneDNN primitives by what they were made for, of one thread: ranks may be threads, and a
// primitive's memory is not shared. Only for files that are compiled with oneDNN.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <cstddef>
#include <map>
#include <memory>

namespace brigade::kernels::cpu {

template <class Key, class Made>
class OnednnCache {
 public:
  // make(key) returns a std::unique_ptr<Made>; nullptr, or throws dnnl::error, where there is no
  // primitive: that is remembered, and nullptr returned.
  template <class Make>
  Made* find(const Key& key, Make make) {
    const auto found = made_.find(key);
    if (found != made_.end()) return found->second.get();
    if (made_.size() >= kMost) made_.clear();
    std::unique_ptr<Made> fresh;
    try {
      fresh = make(key);
    } catch (const dnnl::error&) {
    }
    return made_.emplace(key, std::move(fresh)).first->second.get();
  }

 private:
  static constexpr size_t kMost = 256;  // a job that never repeats a shape must not grow
  std::map<Key, std::unique_ptr<Made>> made_;
};

}  // namespace brigade::kernels::cpu
