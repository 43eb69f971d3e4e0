// Device-independent argument checks of bucket.h.
#pragma once

#include <brigade/kernels/bucket.h>

namespace brigade::kernels {

// Returns the common dtype of the tensors, or flat's if none is defined. `flags` may be undefined.
DType check_bucket(const char* what, const Tensor& flat, const Tensor& flags, std::span<const Tensor> tensors,
                   std::span<const int64_t> offsets);
void check_bucket_sums(const Tensor& flat, std::span<const int64_t> offsets, std::span<const int64_t> numels,
                       const Tensor& sums);
void check_bucket_words(const Tensor& words, const Tensor& sums);
void check_bucket_probe(const Tensor& x, const Tensor& out);

}  // namespace brigade::kernels
