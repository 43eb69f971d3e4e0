// Parses a value strictly as an integer, and adds with overflow checks.
#include <brigade/dist/rendezvous/store/sum.h>

#include <brigade/core/error.h>

#include <charconv>

namespace brigade::dist {

namespace {

// Quotes a value in an error: truncated, because it may be long, and printable, because it may hold any bytes.
std::string quoted(const std::string& text) {
  constexpr size_t kMost = 40;
  std::string shown = text.substr(0, kMost);
  for (char& c : shown)
    if (c < ' ' || c > '~') c = '?';
  return text.size() > kMost ? "'" + shown + "...'" : "'" + shown + "'";
}

}  // namespace

int64_t added_to(const std::string& key, const std::string* text, int64_t amount) {
  int64_t before = 0;
  if (text) {
    const char* end = text->data() + text->size();
    const auto [rest, error] = std::from_chars(text->data(), end, before);
    if (error != std::errc() || rest != end)
      throw DistError(
          "store: add({}, {}) expects a whole number of 64 bits under that key, but its value is {}; use another key "
          "for the count",
          quoted(key), amount, quoted(*text));
  }
  int64_t sum = 0;
  if (__builtin_add_overflow(before, amount, &sum))
    throw DistError("store: add({}, {}) would leave the range of 64 bits: the value is {}", quoted(key), amount,
                    before);
  return sum;
}

}  // namespace brigade::dist
