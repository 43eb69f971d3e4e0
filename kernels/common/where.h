// Device-independent parts of `where`.
#pragma once

#include <brigade/kernels/where.h>

#include <bit>
#include <cstring>

namespace brigade::kernels {

struct ChoicePlan {
  Tensor condition;  // bool
  Tensor a, b;       // in the result's dtype, not broadcast; undefined for a number
  Tensor out;        // not filled
};
ChoicePlan prepare_where(const Tensor& condition, const Choice& a, const Choice& b);

// Calls body with an unsigned type of the size of an element: `where` is the same for all dtypes of one size.
template <class Body>
void visit_words(DType dtype, Body&& body) {
  switch (itemsize(dtype)) {
    case 8: body.template operator()<uint64_t>(); break;
    case 4: body.template operator()<uint32_t>(); break;
    case 2: body.template operator()<uint16_t>(); break;
    default: body.template operator()<uint8_t>(); break;
  }
}

// The bits of a number as an element of `dtype`.
template <class Word>
Word word_of(Scalar number, DType dtype) {
  Word word{};
  visit_dtype(dtype, [&]<class T>() {
    const T element = static_cast<T>(number.to<compute_type<T>>());
    if constexpr (sizeof(T) == sizeof(Word)) std::memcpy(&word, &element, sizeof(T));
  });
  return word;
}

}  // namespace brigade::kernels
