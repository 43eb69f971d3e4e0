// JSON text between ranks.
#include <brigade/dist/diagnosis/json.h>

namespace brigade::dist {

std::string to_text(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

nlohmann::json from_text(const std::string& text) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) throw DistError("a message from a rank is not JSON: '{}'", text.substr(0, 40));
  return json;
}

}  // namespace brigade::dist
