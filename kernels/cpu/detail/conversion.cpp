// Casts between any two dtypes (half types through float32), and strided copies by word size.
#include <brigade/kernels/cpu/detail/conversion.h>

#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/cpu/vector/elementwise.h>

#include <algorithm>
#include <cstring>

namespace brigade::kernels::cpu {
namespace {

// Calls body for every dtype except the half types, which go through float32.
template <class Body>
void visit_plain(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::Float64: return body.template operator()<double>();
    case DType::Int64: return body.template operator()<int64_t>();
    case DType::Int32: return body.template operator()<int32_t>();
    case DType::UInt8: return body.template operator()<uint8_t>();
    case DType::Bool: return body.template operator()<bool>();
    default: return body.template operator()<float>();
  }
}

void convert_plain(DType from_dtype, const void* from, DType to_dtype, void* to, int64_t n) {
  visit_plain(from_dtype, [&]<class From>() {
    visit_plain(to_dtype, [&]<class To>() {
      const From* const source = static_cast<const From*>(from);
      To* const target = static_cast<To*>(to);
      for (int64_t i = 0; i < n; ++i)
        target[i] = as_element<To>(source[i]);
    });
  });
}

void widen_any(DType dtype, const void* from, float* to, int64_t n) {
  if (dtype == kFloat16) return widen(static_cast<const float16*>(from), to, n);
  widen(static_cast<const bfloat16*>(from), to, n);
}
void narrow_any(const float* from, DType dtype, void* to, int64_t n) {
  if (dtype == kFloat16) return narrow(from, static_cast<float16*>(to), n);
  narrow(from, static_cast<bfloat16*>(to), n);
}

template <class Body>
void visit_words(size_t bytes, Body&& body) {
  switch (bytes) {
    case 8: return body.template operator()<uint64_t>();
    case 4: return body.template operator()<uint32_t>();
    case 2: return body.template operator()<uint16_t>();
    default: return body.template operator()<uint8_t>();
  }
}

}  // namespace

void convert(DType from_dtype, const void* from, DType to_dtype, void* to, int64_t n) {
  if (from_dtype == to_dtype) {
    std::memcpy(to, from, static_cast<size_t>(n) * itemsize(from_dtype));
    return;
  }
  if (!is_half(from_dtype) && !is_half(to_dtype)) return convert_plain(from_dtype, from, to_dtype, to, n);
  if (is_half(from_dtype) && to_dtype == kFloat32) return widen_any(from_dtype, from, static_cast<float*>(to), n);
  if (is_half(to_dtype) && from_dtype == kFloat32) return narrow_any(static_cast<const float*>(from), to_dtype, to, n);
  constexpr int64_t kBlock = 1024;
  float block[kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = std::min(kBlock, n - i);
    const void* const source = static_cast<const char*>(from) + static_cast<size_t>(i) * itemsize(from_dtype);
    void* const target = static_cast<char*>(to) + static_cast<size_t>(i) * itemsize(to_dtype);
    convert(from_dtype, source, kFloat32, block, count);
    convert(kFloat32, block, to_dtype, target, count);
  }
}

void* element(const Tensor& tensor, int64_t i) {
  return static_cast<char*>(tensor.raw_data()) + static_cast<size_t>(i) * itemsize(tensor.dtype());
}

void read_elements(const Tensor& from, int64_t first, DType to_dtype, void* to, int64_t n) {
  convert(from.dtype(), element(from, first), to_dtype, to, n);
}
void write_elements(DType from_dtype, const void* from, const Tensor& to, int64_t first, int64_t n) {
  convert(from_dtype, from, to.dtype(), element(to, first), n);
}

void gather_words(const void* from, int64_t step, size_t bytes, void* to, int64_t n) {
  visit_words(bytes, [&]<class Word>() {
    const Word* const source = static_cast<const Word*>(from);
    Word* const target = static_cast<Word*>(to);
    if (step == 0) {
      std::fill(target, target + n, *source);
      return;
    }
    for (int64_t i = 0; i < n; ++i)
      target[i] = source[i * step];
  });
}

void scatter_words(const void* from, size_t bytes, void* to, int64_t step, int64_t n) {
  visit_words(bytes, [&]<class Word>() {
    const Word* const source = static_cast<const Word*>(from);
    Word* const target = static_cast<Word*>(to);
    for (int64_t i = 0; i < n; ++i)
      target[i * step] = source[i];
  });
}

}  // namespace brigade::kernels::cpu
