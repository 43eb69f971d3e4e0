// What a TCP store keeps, within bounds.
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

  // Throw DistError, which says what is full, when there is no room; the value stays as it was.
  void set(const std::string& key, std::string value);
  int64_t add(const std::string& key, int64_t amount);
  // nullptr when it is not there. A value lives, and counts, for as long as somebody holds it: a
  // client that does not read its answer cannot make the store hold more than it may.
  std::shared_ptr<const std::string> find(const std::string& key) const;

 private:
  const StoreLimits limits_;
  std::shared_ptr<std::atomic<size_t>> bytes_;  // outlives the map: values give back their share
  std::map<std::string, std::shared_ptr<const std::string>> values_;
};

}  // namespace brigade::dist
