// Converts the inputs and outputs of a module to the dtypes of a precision.
#pragma once

#include <brigade/core/tensor.h>

#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace brigade::dist::detail {

template <class T>
concept IsTensor = std::same_as<std::remove_cvref_t<T>, Tensor>;
template <class T>
concept IsTensors = std::same_as<std::remove_cvref_t<T>, std::vector<Tensor>>;

inline Tensor floats_to(const Tensor& tensor, DType dtype, SourceLocation where) {
  const bool is_float = tensor.defined() && is_floating_point(tensor.dtype());
  return is_float && tensor.dtype() != dtype ? tensor.to(dtype, where) : tensor;
}

// Casts floating tensors to `dtype`; passes everything else unchanged.
template <class T>
decltype(auto) input_to(T&& value, DType dtype, SourceLocation where) {
  if constexpr (IsTensor<T>) {
    return floats_to(value, dtype, where);
  } else if constexpr (IsTensors<T>) {
    std::vector<Tensor> converted;
    for (const Tensor& each : value)
      converted.push_back(floats_to(each, dtype, where));
    return converted;
  } else {
    return std::forward<T>(value);
  }
}

template <class T>
struct IsPairOrTuple : std::false_type {};
template <class A, class B>
struct IsPairOrTuple<std::pair<A, B>> : std::true_type {};
template <class... T>
struct IsPairOrTuple<std::tuple<T...>> : std::true_type {};

// Casts half types to float32, element by element in pairs and tuples.
template <class T>
std::remove_cvref_t<T> output_of(T&& value, SourceLocation where) {
  const auto one = [&](const Tensor& each) {
    return each.defined() && is_half(each.dtype()) ? each.to(kFloat32, where) : each;
  };
  if constexpr (IsTensor<T>) {
    return one(value);
  } else if constexpr (IsTensors<T>) {
    std::vector<Tensor> converted;
    for (const Tensor& each : value)
      converted.push_back(one(each));
    return converted;
  } else if constexpr (IsPairOrTuple<std::remove_cvref_t<T>>::value) {
    return std::apply([&](const auto&... each) { return std::remove_cvref_t<T>(output_of(each, where)...); }, value);
  } else {
    return std::forward<T>(value);
  }
}

}  // namespace brigade::dist::detail
