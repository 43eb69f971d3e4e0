// The state of schedulers, in a form that can be saved.
#pragma once

#include <brigade/core/error.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace brigade::optim {

// Numbers by name. The functions of a LambdaLR are not included.
struct SchedulerState {
  std::string scheduler;  // "StepLR"; "" is not compared
  std::vector<std::pair<std::string, double>> numbers;
};

// Visits the members of a scheduler by name: numbers, enumerations, and lists of them whose length
// does not change.
class SchedulerVisitor {
 public:
  using Number = std::function<void(const std::string& name, double& value)>;
  explicit SchedulerVisitor(Number number) : number_(std::move(number)) {}

  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void operator()(const std::string& name, T& value) const {
    using Through = std::conditional_t<std::floating_point<T>, double, int64_t>;
    auto number = static_cast<double>(static_cast<Through>(value));
    number_(name, number);
    value = static_cast<T>(static_cast<Through>(number));
  }
  template <class T>
  void operator()(const std::string& name, std::vector<T>& values) const {
    for (size_t i = 0; i < values.size(); ++i)
      (*this)(name + "." + std::to_string(i), values[i]);
  }
  // For the members of a scheduler within another: names start with `prefix`.
  SchedulerVisitor under(const std::string& prefix) const;

 private:
  Number number_;
};

namespace detail {
using VisitScheduler = std::function<void(const SchedulerVisitor&)>;
SchedulerState save_scheduler(const std::string& name, const VisitScheduler& visit);
// Throws a ValueError that names the entries that are missing, left over, or of another kind; then nothing has been
// changed.
void load_scheduler(const SchedulerState& state, const std::string& name, const VisitScheduler& visit,
                    std::source_location where);
}  // namespace detail

}  // namespace brigade::optim
