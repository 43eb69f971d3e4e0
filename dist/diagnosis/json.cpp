// JSON text between ranks.
#include <brigade/dist/diagnosis/json.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace brigade::dist {

namespace {

// JSON has no word for these numbers: they travel as strings that begin with this character.
constexpr char kMark = '\x01';

bool is_unsayable(const nlohmann::json& json) {
  if (json.is_structured()) return std::any_of(json.begin(), json.end(), &is_unsayable);
  return json.is_number_float() && !std::isfinite(json.get<double>());
}

nlohmann::json sayable(nlohmann::json json) {
  if (json.is_structured()) {
    for (nlohmann::json& each : json)
      each = sayable(std::move(each));
  } else if (is_unsayable(json)) {
    const double number = json.get<double>();
    return kMark + std::string(std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
  }
  return json;
}

void restore(nlohmann::json& json) {
  if (json.is_structured()) {
    for (nlohmann::json& each : json)
      restore(each);
    return;
  }
  if (!json.is_string()) return;
  const auto& text = json.get_ref<const std::string&>();
  if (text.empty() || text[0] != kMark) return;
  const double number =
      text == "\x01nan" ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  json = text == "\x01-inf" ? -number : number;
}

}  // namespace

std::string to_text(const nlohmann::json& json) {
  const auto dump = [](const nlohmann::json& all) {
    return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  return is_unsayable(json) ? dump(sayable(json)) : dump(json);
}

nlohmann::json from_text(const std::string& text) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) throw DistError("a message from a rank is not JSON: '{}'", text.substr(0, 40));
  restore(json);
  return json;
}

}  // namespace brigade::dist
