// JSON values from the calls of a parser that reads a text piece by piece.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

namespace brigade::lab {

// Of a key that comes twice the second counts, as with json::parse.
class JsonBuilder {
 public:
  void key(std::string& key) { key_ = std::move(key); }
  void add(nlohmann::json value) { *place() = std::move(value); }
  // An object or a list, empty: what comes next belongs into it, until end().
  void start(nlohmann::json::value_t type) {
    nlohmann::json* const value = place();
    *value = type;
    open_.push_back(value);
  }
  void end() { open_.pop_back(); }
  // The value, once all that was started has ended.
  nlohmann::json take() { return std::move(value_); }

 private:
  // Elements stay where they are while one of them is open: their list grows when that has ended.
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
