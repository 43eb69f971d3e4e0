// A model of one weight and its optimizer, for tests of a scaler.
#pragma once

#include <brigade/amp/grad_scaler.h>
#include <brigade/autograd/functional.h>
#include <brigade/core/warning.h>
#include <brigade/kernels/factory.h>
#include <brigade/optim/optim.h>

#include <core/error_of.h>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace brigade::test {

// loss() = slope * weight: the gradient is `slope`, and a step of SGD with rate 1 subtracts it.
struct OneWeight {
  Tensor weight = zeros({1}).requires_grad_();
  optim::SGD optimizer{{weight}, {.lr = 1}};

  Tensor loss(double slope = 1) const { return (weight * slope).sum(); }
  double value() const { return weight.detach().item(); }
  double gradient() const { return weight.grad().item(); }
};

// "amp/a_test.cpp:12"
inline std::string at(unsigned line, SourceLocation here = SourceLocation::current()) {
  const std::string text = to_string(here);
  return text.substr(0, text.rfind(':') + 1) + std::to_string(line);
}

inline bool says_all(const std::string& message, const std::vector<std::string>& parts) {
  const std::string text = with_whole_places(message);
  for (const std::string& part : parts) {
    if (text.find(part) != std::string::npos) continue;
    MESSAGE("\"" << text << "\" does not say \"" << part << "\"");
    return false;
  }
  return true;
}

// RAII: captures the warnings that are raised during its lifetime.
class Warnings {
 public:
  Warnings() : before_(set_warning_handler([this](const Warning& warning) { texts.push_back(warning.message); })) {}
  ~Warnings() { set_warning_handler(before_); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  std::vector<std::string> texts;

 private:
  std::function<void(const Warning&)> before_;
};

}  // namespace brigade::test
