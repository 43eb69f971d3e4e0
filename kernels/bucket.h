// The kernels of a bucket of gradients (dist/reducer/reducer.h): many tensors and one flat buffer.
//
// `flat` is 1-d, contiguous, floating. Slot i is flat[offsets[i], offsets[i] + numel of tensors[i]); slots must fit and
// not overlap; elements between slots are not touched. On a GPU one launch takes up to 136 slots (190 for the sums,
// which need a second launch to add up the partial sums).
//
// Errors: ShapeError for slots that overlap or do not fit, tensors that are not contiguous, and lists of different
// lengths; DTypeError for a dtype that is not floating or not the expected one; DeviceError for tensors on several
// devices.
#pragma once

#include <brigade/kernels/kernel.h>

#include <span>

namespace brigade::kernels {

// flat[offsets[i] + j] = scale * tensors[i][j], computed in the wider compute_type of the two dtypes and cast to the
// dtype of flat. Tensors are contiguous and share one dtype; an undefined tensor writes nothing. A tensor may alias its
// slot.
extern Kernel<void(const Tensor& flat, std::span<const Tensor> tensors, std::span<const int64_t> offsets, double scale)>
    bucket_flatten;

// tensors[i][j] = scale * flat[offsets[i] + j] for every i whose flag is not 0. `flags`: [tensors.size()], contiguous,
// on flat's device, in flat's dtype (as in a bucket's payload); undefined: all slots. Tensors as above.
extern Kernel<void(const Tensor& flat, const Tensor& flags, std::span<const Tensor> tensors,
                   std::span<const int64_t> offsets, double scale)>
    bucket_unflatten;

// sums[i] = the sum of squares of the numels[i] elements of flat at offsets[i]. `sums`: float64 [slots], contiguous, on
// flat's device. The order of additions is fixed, so results are bitwise reproducible. For float32 and half types a sum
// is finite exactly when all its elements are.
extern Kernel<void(const Tensor& flat, std::span<const int64_t> offsets, std::span<const int64_t> numels,
                   const Tensor& sums)>
    bucket_sums_of_squares;

// The payload words that summarize a bucket, computed on its device. words = {log2 of the total of `sums` (0 when the
// total is 0 or not finite), the square of the first word as rounded to the words' dtype, 1 when the total is 0, 1 when
// one of the sums is not finite or `non_finite`}: 4 elements, contiguous, floating. `sums`: float64, contiguous, on the
// words' device.
extern Kernel<void(const Tensor& words, const Tensor& sums, bool non_finite)> bucket_words;

// out[0] = probe(x), see below; `out` float64, one element, on x's device; x contiguous, of any
// shape.
extern Kernel<void(const Tensor& x, const Tensor& out)> bucket_probe;

// Host functions for a contiguous floating tensor on the CPU.
//
// Sum of squares. Squares and sums of 256 of them are in the compute_type while they fit there, the total in double.
// Finite exactly when all elements are (a float64 square that overflows counts as the largest finite double).
double sum_of_squares(const Tensor& tensor);
// The same for n elements at `data`.
double sum_of_squares(const void* data, DType dtype, int64_t n);
bool has_non_finite(const Tensor& tensor);
// The dot product with a fixed sequence of weights. It is linear: the mean of the ranks' probes is the probe of the
// mean, which exposes a hook that does not average.
double probe(const Tensor& tensor);

}  // namespace brigade::kernels
