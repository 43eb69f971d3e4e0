// What the kernels of bucket.h demand of their arguments, on every device.
#pragma once

#include <brigade/kernels/bucket.h>

namespace brigade::kernels {

// The dtype that the tensors have in common; flat's when none is defined. `flags` may be undefined.
DType check_bucket(const char* what, const Tensor& flat, const Tensor& flags, std::span<const Tensor> tensors,
                   std::span<const int64_t> offsets);
void check_bucket_sums(const Tensor& flat, std::span<const int64_t> offsets, std::span<const int64_t> numels,
                       const Tensor& sums);
void check_bucket_words(const Tensor& words, const Tensor& sums);
void check_bucket_probe(const Tensor& x, const Tensor& out);

}  // namespace brigade::kernels
