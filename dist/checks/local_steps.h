// Local steps of a wrapper: by gradients that a communication hook has let stay local, while nothing averages the
// parameters.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/dist/checks/lone_steps.h>

#include <string>
#include <utility>

namespace brigade::dist {

class LocalSteps {
 public:
  // `title`: of the wrapper; `hook`: its name.
  LocalSteps(std::string title, std::string hook) : title_(std::move(title)), hook_(std::move(hook)) {}

  // Before a step by gradients that no collective has averaged.
  void look_at(const autograd::Update& update);
  // Warns, once, unless something has averaged parameters or gradients.
  void tell();

 private:
  // By something else than the steps seen here: an average, or what may have been one.
  bool is_written() const;
  bool is_averaged_by_hand(const autograd::Update& update) const;

  std::string title_, hook_;
  LoneSteps steps_;
};

}  // namespace brigade::dist
