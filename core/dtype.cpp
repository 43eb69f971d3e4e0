// Dtypes by name, and the dtype that two dtypes are promoted to.
#include <brigade/core/dtype.h>

#include <iterator>

namespace brigade {

namespace {
constexpr const char* kNames[] = {"float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8", "bool"};
}

const char* name(DType dtype) noexcept { return kNames[static_cast<int>(dtype)]; }

DType dtype_from_name(const std::string& name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<DType>(i);
  }
  std::string known;
  for (const char* each : kNames)
    known += std::string(known.empty() ? "" : ", ") + each;
  throw DTypeError("unknown dtype '{}'; known are {}", name, known);
}

DType promote_types(DType a, DType b) noexcept {
  if (a == b) return a;
  if (is_half(a) && is_half(b)) return DType::Float32;
  // The enumeration runs from the widest to the narrowest, floats first: the lower value wins.
  return a < b ? a : b;
}

}  // namespace brigade
