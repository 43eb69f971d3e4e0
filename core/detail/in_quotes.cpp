// Non-printable bytes are escaped, and a long text is shortened in the middle.
#include <brigade/core/detail/in_quotes.h>

namespace brigade::detail {

std::string in_quotes(std::string_view text) {
  constexpr size_t kLongest = 80;
  constexpr const char* kDigits = "0123456789abcdef";
  std::string result = "\"";
  const auto append = [&](std::string_view part) {
    for (const char character : part) {
      const auto byte = static_cast<unsigned char>(character);
      if (byte < 0x20 || byte > 0x7e) {
        result += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
      } else {
        if (character == '"' || character == '\\') result += '\\';
        result += character;
      }
    }
  };
  if (text.size() <= kLongest) {
    append(text);
  } else {
    append(text.substr(0, kLongest / 2));
    result += "...";
    append(text.substr(text.size() - kLongest / 2));
  }
  return result + "\"";
}

}  // namespace brigade::detail
