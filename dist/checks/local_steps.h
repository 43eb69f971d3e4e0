// Detects optimizer steps with gradients that a communication hook has left local, while nothing averages the
// parameters.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/dist/checks/unsynced_steps.h>

#include <string>
#include <utility>

namespace brigade::dist {

class LocalSteps {
 public:
  // `title`: the wrapper's title; `hook`: the hook's name.
  LocalSteps(std::string title, std::string hook) : title_(std::move(title)), hook_(std::move(hook)) {}

  // Called before a step with gradients that no collective has averaged.
  void look_at(const autograd::Update& update);
  // Warns, once, unless something has averaged parameters or gradients.
  void tell();

 private:
  // Whether anything but the steps seen here has written to a parameter: an average, or what may have been one.
  bool is_written() const;
  bool is_averaged_by_hand(const autograd::Update& update) const;

  std::string title_, hook_;
  UnsyncedSteps steps_;
};

}  // namespace brigade::dist
