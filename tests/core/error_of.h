// The text of what an action throws.
#pragma once

#include <brigade/core/error.h>

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

}  // namespace brigade::test
