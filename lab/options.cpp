// Checks of numbers in a range, words of a list, dtypes and regular expressions.
#include <brigade/lab/options.h>

#include <brigade/core/dtype.h>
#include <brigade/core/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <regex>

namespace brigade::lab {
namespace {

// `wrong(value)` returns an error message, or "".
template <class F>
ValueCheck check_number(const std::string& about, F wrong) {
  return {about, [wrong](const std::string& text) {
            char* end = nullptr;
            const double value = std::strtod(text.c_str(), &end);
            return !text.empty() && *end == '\0' ? wrong(value) : "expected a number, got '" + text + "'";
          }};
}

}  // namespace

ValueCheck number_from(double least, double most) {
  const std::string limits =
      std::isfinite(most) ? fmt::format("from {} to {}", least, most) : fmt::format("from {}", least);
  const std::string about =
      std::isfinite(most) ? fmt::format("FROM {} TO {}", least, most) : fmt::format("FROM {}", least);
  return check_number(about, [least, most, limits](double value) {
    return value >= least && value <= most ? std::string() : fmt::format("expected a number {}, got {}", limits, value);
  });
}

ValueCheck whole_number_from(int64_t least, int64_t most) {
  return {fmt::format("FROM {} TO {}", least, most), [least, most](const std::string& text) {
            const std::optional<int64_t> number = whole_number(text);
            return number && *number >= least && *number <= most
                       ? std::string()
                       : fmt::format("expected a whole number from {} to {}, got '{}'", least, most, text);
          }};
}

ValueCheck positive_number() {
  return check_number("POSITIVE", [](double value) {
    return value > 0 && std::isfinite(value) ? std::string() : fmt::format("expected a number above 0, got {}", value);
  });
}

ValueCheck one_of(const std::vector<std::string>& words) {
  const std::string known = fmt::format("{}", fmt::join(words, ", "));
  return {known, [words, known](const std::string& text) {
            return std::find(words.begin(), words.end(), text) != words.end()
                       ? std::string()
                       : "expected one of " + known + ", got '" + text + "'";
          }};
}

ValueCheck dtype_name() {
  return {"DTYPE", [](const std::string& text) -> std::string {
            try {
              dtype_from_name(text);
              return "";
            } catch (const Error& error) {
              return error.what();
            }
          }};
}

ValueCheck regular_expression() {
  return {"REGEX", [](const std::string& text) -> std::string {
            try {
              const std::regex unused(text);
              return "";
            } catch (const std::regex_error& error) {
              return "'" + text + "' is not a regular expression: " + error.what();
            }
          }};
}

}  // namespace brigade::lab
