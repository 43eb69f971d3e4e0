// The printed form of a module.
#pragma once

#include <sstream>
#include <string>

namespace brigade::test {

template <class H>
std::string printed(const H& holder) {
  std::ostringstream text;
  text << *holder;
  return text.str();
}

}  // namespace brigade::test
