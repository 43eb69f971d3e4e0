// The keys and values of a TCP store, within limits.
#pragma once

#include <brigade/dist/rendezvous/store.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>

namespace brigade::dist {

class StoredValues {
 public:
  explicit StoredValues(const StoreLimits& limits) : limits_(limits), bytes_(std::make_shared<std::atomic<size_t>>()) {}

  // Throw DistError that names the exceeded limit when there is no room; the value is then unchanged.
  void set(const std::string& key, std::string value);
  int64_t add(const std::string& key, int64_t amount);
  // nullptr when the key is absent. A value lives, and counts against the limit, as long as any caller holds it, so
  // that a client that does not read its answers cannot make the store exceed its limit.
  std::shared_ptr<const std::string> find(const std::string& key) const;

 private:
  const StoreLimits limits_;
  std::shared_ptr<std::atomic<size_t>> bytes_;  // outlives the map: deleters of values decrement it
  std::map<std::string, std::shared_ptr<const std::string>> values_;
};

}  // namespace brigade::dist
