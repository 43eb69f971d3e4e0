// A per-thread cache of oneDNN primitives by key. Ranks may be threads, and primitives are not shared between threads.
// Only for files that are compiled with oneDNN.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <cstddef>
#include <map>
#include <memory>

namespace brigade::kernels::cpu {

template <class Key, class Made>
class OnednnCache {
 public:
  // make(key) returns a std::unique_ptr<Made>; if there is no primitive it returns nullptr or throws dnnl::error.
  // find() then caches and returns nullptr.
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
  static constexpr size_t kMost = 256;  // bounds the memory of jobs that never repeat a shape
  std::map<Key, std::unique_ptr<Made>> made_;
};

}  // namespace brigade::kernels::cpu
