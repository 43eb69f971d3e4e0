// Quotes text, and writes JSON with non-finite numbers as strings.
#include <brigade/dist/errors/json.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace brigade::dist {
namespace {

// JSON cannot represent these numbers: they travel as strings that no other text of ours equals.
constexpr const char* kNaN = "\x01nan";
constexpr const char* kInfinity = "\x01inf";
constexpr const char* kMinusInfinity = "\x01-inf";

bool is_unsayable(const nlohmann::json& json) {
  if (json.is_structured()) return std::any_of(json.begin(), json.end(), &is_unsayable);
  return json.is_number_float() && !std::isfinite(json.get<double>());
}

void make_sayable(nlohmann::json& json) {
  if (json.is_structured()) {
    for (nlohmann::json& each : json)
      make_sayable(each);
  } else if (is_unsayable(json)) {
    const double number = json.get<double>();
    json = std::isnan(number) ? kNaN : number > 0 ? kInfinity : kMinusInfinity;
  }
}

void restore(nlohmann::json& json) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (json.is_structured()) {
    for (nlohmann::json& each : json)
      restore(each);
  } else if (json == kNaN) {
    json = std::numeric_limits<double>::quiet_NaN();
  } else if (json == kInfinity) {
    json = infinity;
  } else if (json == kMinusInfinity) {
    json = -infinity;
  }
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      result += "\\u00";
      result += kDigits[static_cast<unsigned char>(c) >> 4];
      result += kDigits[static_cast<unsigned char>(c) & 15];
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string to_text(const nlohmann::json& json) {
  if (is_unsayable(json)) {
    nlohmann::json copy = json;
    make_sayable(copy);
    return to_text(copy);
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

nlohmann::json from_text(const std::string& text) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) throw DistError("a message from a rank is not JSON: '{}'", text.substr(0, 40));
  restore(json);
  return json;
}

}  // namespace brigade::dist
