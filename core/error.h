// Errors: one exception type per kind of mistake, all derived from brigade::Error.
//
// A message is one line that says what was expected, what came (shapes, dtypes, devices, names) and what to do. Errors
// are thrown where the user's mistake is visible; `where()` is the user's line when it is known (line() == 0
// otherwise).
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>

namespace brigade {

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, std::source_location where = {})
      : std::runtime_error(message), where_(where) {}

  // The line of the user's call that led here.
  const std::source_location& where() const noexcept { return where_; }

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
// Misuse of the graph: a freed graph, a root without history, an in-place write on a leaf, a stale saved tensor.
class AutogradError : public Error {
  using Error::Error;
};
// Memory that cannot be had.
class OutOfMemoryError : public Error {
  using Error::Error;
};
// A file or a pipe: missing, truncated, malformed.
class IoError : public Error {
  using Error::Error;
};
// Anything between ranks.
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

// "file.cpp:12", with only the last two components of the path; "" when the location is not known.
std::string to_string(const std::source_location& where);

}  // namespace brigade
