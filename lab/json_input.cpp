// The parser itself needs no stack; its callback knows how deep it is. Files are read whole.
#include <brigade/lab/json_input.h>

#include <brigade/core/error.h>

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

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

json read_json(const std::string& cannot, const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw IoError("{} {}: {}", cannot, file, std::strerror(errno));
  return parse_json(text.str());
}

}  // namespace brigade::lab
