// Quotes a text, with backslashes and control characters escaped.
#include <brigade/core/json_text.h>

namespace brigade {

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

}  // namespace brigade
