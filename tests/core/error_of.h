// The message of the exception that an action throws.
#pragma once

#include <brigade/core/error.h>

#include <exception>
#include <string>

namespace brigade::test {

std::string error_of(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// The message of an E; "another error: ..." for any other std::exception, "nothing" if none is thrown.
template <class E>
std::string text_of(const auto& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "nothing";
}

}  // namespace brigade::test
