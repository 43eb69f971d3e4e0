// Steps that create tensors, from data or by a factory function.
#include "differential/step.h"

#include <brigade/core/factory.h>
#include <brigade/kernels/factory.h>

namespace brigade::differential {
namespace {

DType dtype_of_call(const Call& call) { return dtype_from_name(call.args.text("dtype", "float32")); }

// Integers by value; floating-point values are converted from double, rounded once.
template <class T>
Tensor from_list(const nlohmann::json& list, const Shape& shape) {
  Tensor result = empty(shape, dtype_of<T>);
  if (static_cast<int64_t>(list.size()) != result.numel())
    throw ValueError("argument 'values': " + std::to_string(list.size()) + " do not fit " + to_string(shape));
  T* to = result.data_ptr<T>();
  for (const nlohmann::json& value : list) {
    if constexpr (std::is_same_v<T, bool>) {
      *to++ = value.is_boolean() ? value.get<bool>() : value.get<double>() != 0;
    } else if constexpr (std::is_integral_v<T>) {
      *to++ = static_cast<T>(value.get<int64_t>());
    } else {
      *to++ = static_cast<T>(value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>());
    }
  }
  return result;
}

Tensor from_data(const Call& call) {
  call.args.numbers("values");  // marks the argument as used
  const Shape shape = call.args.shape("shape");
  const Tensor result = visit_dtype(
      dtype_of_call(call), [&]<class T>() -> Tensor { return from_list<T>(call.line.args.at("values"), shape); });
  if (call.args.flag("requires_grad", false)) result.requires_grad_();
  return result;
}

const AddSteps add_factories{
    {"tensor", [](const Call& call) -> Outputs { return from_data(call); }},
    {"zeros", [](const Call& call) -> Outputs { return zeros(call.args.shape("size"), dtype_of_call(call)); }},
    {"ones", [](const Call& call) -> Outputs { return ones(call.args.shape("size"), dtype_of_call(call)); }},
    {"full",
     [](const Call& call) -> Outputs {
       return full(call.args.shape("size"), call.args.scalar("fill_value"), dtype_of_call(call));
     }},
    {"arange",
     [](const Call& call) -> Outputs {
       return arange(call.args.scalar("start"), call.args.scalar("end"), call.args.scalar("step"), dtype_of_call(call));
     }},
    {"linspace",
     [](const Call& call) -> Outputs {
       return linspace(call.args.number("start"), call.args.number("end"), call.args.integer("steps"),
                       dtype_of_call(call));
     }},
    {"eye",
     [](const Call& call) -> Outputs {
       return eye(call.args.integer("n"), call.args.integer("m"), dtype_of_call(call));
     }},
    {"zeros_like", [](const Call& call) -> Outputs { return zeros_like(call.in[0]); }},
    {"ones_like", [](const Call& call) -> Outputs { return ones_like(call.in[0]); }},
    {"full_like", [](const Call& call) -> Outputs { return full_like(call.in[0], call.args.scalar("fill_value")); }},
};

}  // namespace
}  // namespace brigade::differential
