// Element types of a tensor, and the dispatch from a runtime dtype to a C++ type.
#pragma once

#include <brigade/core/error.h>
#include <brigade/core/half.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace brigade {

enum class DType : uint8_t { Float64, Float32, Float16, BFloat16, Int64, Int32, UInt8, Bool };

inline constexpr DType kFloat64 = DType::Float64;
inline constexpr DType kFloat32 = DType::Float32;
inline constexpr DType kFloat16 = DType::Float16;
inline constexpr DType kBFloat16 = DType::BFloat16;
inline constexpr DType kInt64 = DType::Int64;
inline constexpr DType kInt32 = DType::Int32;
inline constexpr DType kUInt8 = DType::UInt8;
inline constexpr DType kBool = DType::Bool;
// The same by their names in C++.
inline constexpr DType kDouble = kFloat64, kFloat = kFloat32, kHalf = kFloat16;
inline constexpr DType kLong = kInt64, kInt = kInt32, kByte = kUInt8;

// Bytes of one element. (Four bits each, by position: quicker than a table in memory.)
constexpr size_t itemsize(DType dtype) noexcept { return uint32_t{0x11482248} >> (4 * static_cast<int>(dtype)) & 15; }
constexpr bool is_floating_point(DType dtype) noexcept { return dtype <= DType::BFloat16; }
constexpr bool is_half(DType dtype) noexcept { return dtype == DType::Float16 || dtype == DType::BFloat16; }

// "float32", "bfloat16", "bool", ...
const char* name(DType dtype) noexcept;
// The inverse of name(); throws DTypeError that lists the known names.
DType dtype_from_name(const std::string& name);

// The dtype of `a op b` as PyTorch defines it for two tensors with dimensions: bool < uint8 < int32
// < int64 < floats; float16 with bfloat16 gives float32.
DType promote_types(DType a, DType b) noexcept;

namespace detail {
template <class T>
struct DTypeOf;
template <DType dtype>
struct IsDType {
  static constexpr DType value = dtype;
};
template <>
struct DTypeOf<double> : IsDType<DType::Float64> {};
template <>
struct DTypeOf<float> : IsDType<DType::Float32> {};
template <>
struct DTypeOf<float16> : IsDType<DType::Float16> {};
template <>
struct DTypeOf<bfloat16> : IsDType<DType::BFloat16> {};
template <>
struct DTypeOf<int64_t> : IsDType<DType::Int64> {};
template <>
struct DTypeOf<int32_t> : IsDType<DType::Int32> {};
template <>
struct DTypeOf<uint8_t> : IsDType<DType::UInt8> {};
template <>
struct DTypeOf<bool> : IsDType<DType::Bool> {};
}  // namespace detail

template <class T>
inline constexpr DType dtype_of = detail::DTypeOf<T>::value;

// The type used to compute with an element: float for the 16-bit types, the type itself otherwise.
template <class T>
using compute_type = std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;

// Calls `body.template operator()<T>()` with T the C++ type of `dtype` and returns its result.
template <class Body>
decltype(auto) visit_dtype(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::Float64: return body.template operator()<double>();
    case DType::Float32: return body.template operator()<float>();
    case DType::Float16: return body.template operator()<float16>();
    case DType::BFloat16: return body.template operator()<bfloat16>();
    case DType::Int64: return body.template operator()<int64_t>();
    case DType::Int32: return body.template operator()<int32_t>();
    case DType::UInt8: return body.template operator()<uint8_t>();
    case DType::Bool: break;
  }
  return body.template operator()<bool>();
}

// The same for floating dtypes only; throws DTypeError that names `what` otherwise.
template <class Body>
decltype(auto) visit_floating(DType dtype, const char* what, Body&& body) {
  switch (dtype) {
    case DType::Float64: return body.template operator()<double>();
    case DType::Float32: return body.template operator()<float>();
    case DType::Float16: return body.template operator()<float16>();
    case DType::BFloat16: return body.template operator()<bfloat16>();
    default: break;
  }
  throw DTypeError("{}: expected a floating dtype, got {}; convert with .to(kFloat32)", what, name(dtype));
}

}  // namespace brigade
