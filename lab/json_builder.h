// Builds JSON values from the calls of a streaming parser.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

namespace brigade::lab {

// When a key occurs twice, the second value counts, as with json::parse.
class JsonBuilder {
 public:
  void key(std::string& key) { key_ = std::move(key); }
  void add(nlohmann::json value) { *place() = std::move(value); }
  // Starts an empty object or list; following values belong to it until end().
  void start(nlohmann::json::value_t type) {
    nlohmann::json* const value = place();
    *value = type;
    open_.push_back(value);
  }
  void end() { open_.pop_back(); }
  // The value, after every start() has been ended.
  nlohmann::json take() { return std::move(value_); }

 private:
  // Elements do not move while one of them is open: their list grows only after it has ended.
  nlohmann::json* place() {
    if (open_.empty()) return &value_;
    nlohmann::json& around = *open_.back();
    return around.is_array() ? &around.emplace_back() : &around[key_];
  }

  nlohmann::json value_;
  std::vector<nlohmann::json*> open_;
  std::string key_;
};

}  // namespace brigade::lab
