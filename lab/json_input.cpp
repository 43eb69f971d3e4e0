// The parser itself needs no stack; its callback knows how deep it is.
#include <brigade/lab/json_input.h>

#include <nlohmann/json.hpp>

namespace brigade::lab {

using nlohmann::json;

json parse_json(std::string_view text) {
  constexpr int kDeepest = 64;
  bool too_deep = false;
  json parsed = json::parse(
      text.begin(), text.end(),
      [&](int depth, json::parse_event_t, const json&) {
        too_deep = too_deep || depth >= kDeepest;
        return !too_deep;
      },
      false);
  return too_deep ? json(json::value_t::discarded) : parsed;
}

}  // namespace brigade::lab
