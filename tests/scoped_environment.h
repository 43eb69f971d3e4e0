// Variables of the environment that are set for a scope.
#pragma once

#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace brigade::test {

// Unsets them at its end.
class ScopedEnvironment {
 public:
  ScopedEnvironment(std::initializer_list<std::pair<const char*, const char*>> variables) {
    for (const auto& [name, value] : variables) {
      names_.emplace_back(name);
      setenv(name, value, 1);
    }
  }
  ~ScopedEnvironment() {
    for (const std::string& name : names_)
      unsetenv(name.c_str());
  }
  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;

 private:
  std::vector<std::string> names_;
};

}  // namespace brigade::test
