// Errors: one exception type per kind of mistake, all derived from brigade::Error.
//
// A message is one line that says what was expected, what was given (shapes, dtypes, devices,
// names) and what to do. Errors are thrown where the user's mistake is visible; `where()` is the
// user's line if it is known (line() == 0 otherwise), and the message ends with it.
//
//   throw ShapeError(where, "expand: {} has more dimensions than {}", tensor.sizes(), sizes);
#pragma once

#include <concepts>
#include <initializer_list>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace brigade {

// "file.cpp:12", with only the last two components of the path; "" when the location is not known.
std::string to_string(const std::source_location& where);

namespace detail {

// The replacement of `{}` in a message: text unchanged, numbers in their shortest form, anything
// else through its to_string.
inline std::string in_words(std::string_view text) { return std::string(text); }
inline std::string in_words(bool value) { return value ? "true" : "false"; }
inline std::string in_words(char value) { return std::string(1, value); }
std::string in_words(float value);
std::string in_words(double value);
inline std::string in_words(const std::source_location& where) { return to_string(where); }
template <class T>
std::string in_words(const T& value) {
  if constexpr (std::convertible_to<const T&, std::string_view>) {
    return in_words(std::string_view(value));
  } else {
    using std::to_string;
    return to_string(value);
  }
}

// A message with one `{}` per argument: any other number does not compile.
template <class... Args>
struct ErrorText {
  std::string_view text;

  template <std::convertible_to<std::string_view> Text>
  consteval ErrorText(const Text& words) : text(words) {  // NOLINT(*explicit*): written as a literal
    size_t places = 0;
    for (size_t at = text.find("{}"); at != text.npos; at = text.find("{}", at + 2))
      ++places;
    if (places != sizeof...(Args)) throw "as many {} as arguments";
  }
};

template <class T>
concept NoPlace = !std::same_as<T, std::source_location>;

// Whether `message` contains `word` as a whole word: "all" is not in "called", a.cpp:1 not in "a.cpp:12".
bool says(std::string_view message, std::string_view word);

std::string fill_in(std::string_view text, std::initializer_list<std::string> words);

}  // namespace detail

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, std::source_location where = {});
  // The message with each `{}` replaced by an argument.
  template <detail::NoPlace First, class... Rest>
  explicit Error(detail::ErrorText<std::type_identity_t<First>, std::type_identity_t<Rest>...> text, const First& first,
                 const Rest&... rest)
      : Error(std::source_location(), text, first, rest...) {}
  template <class... Args>
  Error(std::source_location where, detail::ErrorText<std::type_identity_t<Args>...> text, const Args&... args)
      : Error(detail::fill_in(text.text, {detail::in_words(args)...}), where) {}

  // The line of the user's call that led here.
  const std::source_location& where() const noexcept { return where_; }

 protected:
  // For a message that contains the location in its own way.
  void set_where(std::source_location where) noexcept { where_ = where; }

 private:
  std::source_location where_;
};

// Sizes that do not fit together.
class ShapeError : public Error {
  using Error::Error;
};
// A dtype that the operation does not take, or two that differ.
class DTypeError : public Error {
  using Error::Error;
};
// A device that is missing, or tensors on two devices.
class DeviceError : public Error {
  using Error::Error;
};
// An index or a dimension out of range.
class IndexError : public Error {
  using Error::Error;
};
// An argument whose value makes no sense (negative stride, probability above one).
class ValueError : public Error {
  using Error::Error;
};
// Misuse of the graph: a freed graph, a root without history, an in-place write on a leaf, a stale
// saved tensor.
class AutogradError : public Error {
  using Error::Error;
};
// An allocation that failed.
class OutOfMemoryError : public Error {
  using Error::Error;
};
// A file or a pipe: missing, truncated, malformed.
class IoError : public Error {
  using Error::Error;
};
// Any failure between ranks.
class DistError : public Error {
  using Error::Error;
};
// A wait on another rank that took longer than its timeout.
class TimeoutError : public DistError {
  using DistError::DistError;
};
// A peer that died, left, or reported a failure of its own.
class PeerError : public DistError {
  using DistError::DistError;
};

}  // namespace brigade
