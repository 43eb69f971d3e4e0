#include <brigade/lab/options.h>

#include <brigade/core/dtype.h>
#include <brigade/core/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <regex>

namespace brigade::lab {

namespace {

// `wrong(value)` says what is wrong with a number, or "".
template <class F>
CLI::Validator check_number(const std::string& about, F wrong) {
  return CLI::Validator(
      [wrong](const std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        return !text.empty() && *end == '\0' ? wrong(value) : "expected a number, got '" + text + "'";
      },
      about);
}

}  // namespace

CLI::Validator number_from(double least, double most) {
  return check_number(fmt::format("FROM {} TO {}", least, most), [least, most](double value) {
    return value >= least && value <= most ? std::string()
                                           : fmt::format("expected a number from {} to {}, got {}", least, most, value);
  });
}

CLI::Validator positive_number() {
  return check_number("POSITIVE", [](double value) {
    return value > 0 && std::isfinite(value) ? std::string() : fmt::format("expected a number above 0, got {}", value);
  });
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  const std::string known = fmt::format("{}", fmt::join(words, ", "));
  return CLI::Validator(
      [words, known](const std::string& text) {
        return std::find(words.begin(), words.end(), text) != words.end()
                   ? std::string()
                   : "expected one of " + known + ", got '" + text + "'";
      },
      known);
}

CLI::Validator dtype_name() {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        try {
          dtype_from_name(text);
          return "";
        } catch (const Error& error) {
          return error.what();
        }
      },
      "DTYPE");
}

CLI::Validator regular_expression() {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        try {
          const std::regex unused(text);
          return "";
        } catch (const std::regex_error& error) {
          return "'" + text + "' is not a regular expression: " + error.what();
        }
      },
      "REGEX");
}

}  // namespace brigade::lab
