// A list of texts as one text, and back: "5:hello" for each, so that any character may occur.
#pragma once

#include <brigade/core/error.h>

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::dist {

class FieldWriter {
 public:
  FieldWriter& operator<<(std::string_view field) {
    text_ += std::to_string(field.size());
    text_ += ':';
    text_ += field;
    return *this;
  }
  FieldWriter& operator<<(int64_t number) { return *this << std::string_view(std::to_string(number)); }
  FieldWriter& operator<<(const std::vector<int>& numbers) {
    *this << static_cast<int64_t>(numbers.size());
    for (const int number : numbers)
      *this << int64_t{number};
    return *this;
  }
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

// Throws DistError when there is no further field.
class FieldReader {
 public:
  explicit FieldReader(std::string_view text) : rest_(text) {}
  bool done() const noexcept { return rest_.empty(); }
  std::string next() {
    size_t length = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), length);
    const auto digits = static_cast<size_t>(end - rest_.data());
    if (error != std::errc() || digits >= rest_.size() || rest_[digits] != ':' || rest_.size() - digits - 1 < length)
      throw DistError("a message from a rank ended too early, at '{}'", rest_.substr(0, 40));
    std::string field(rest_.substr(digits + 1, length));
    rest_.remove_prefix(digits + 1 + length);
    return field;
  }
  int64_t number() { return std::atoll(next().c_str()); }
  std::vector<int> numbers() {
    std::vector<int> result;
    for (int64_t count = number(); count > 0; --count)
      result.push_back(static_cast<int>(number()));
    return result;
  }

 private:
  std::string_view rest_;
};

}  // namespace brigade::dist
