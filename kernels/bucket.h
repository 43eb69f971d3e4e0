// The kernels of a bucket of gradients (dist/reducer/reducer.h): many tensors and one flat buffer.
//
// `flat` is 1-d, contiguous, floating. Slot i is flat[offsets[i], offsets[i] + numel of
// tensors[i]); slots must fit and not overlap, what lies between them is left alone. On a device
// the bucket's slots go into one launch, up to 136 of them (190 for the sums, which take a second
// launch to add up the pieces), and into one more per 136 above.
//
// Errors: ShapeError for slots that overlap or do not fit, what is not contiguous, and lists of
// different lengths; DTypeError for a dtype that is not floating or not the expected one;
// DeviceError for tensors on several devices.
#pragma once

#include <brigade/kernels/kernel.h>

#include <span>

namespace brigade::kernels {

// flat[offsets[i] + j] = scale * tensors[i][j], computed in the wider compute_type of the two
// dtypes and cast to that of flat. Tensors contiguous, of one dtype among themselves; an undefined
// one writes nothing. A tensor may be its slot.
extern Kernel<void(const Tensor& flat, std::span<const Tensor> tensors, std::span<const int64_t> offsets, double scale)>
    bucket_flatten;

// tensors[i][j] = scale * flat[offsets[i] + j] for every i whose flag is not 0. `flags`:
// [tensors.size()], contiguous, on flat's device, in flat's dtype (as in a bucket's payload);
// undefined: all. Tensors as above.
extern Kernel<void(const Tensor& flat, const Tensor& flags, std::span<const Tensor> tensors,
                   std::span<const int64_t> offsets, double scale)>
    bucket_unflatten;

// sums[i] = the sum of squares of the numels[i] elements of flat at offsets[i]. `sums`: float64
// [slots], contiguous, on flat's device. A fixed order of additions: the same bits each time. Of
// float32 and the halves a sum is finite exactly when all its elements are.
extern Kernel<void(const Tensor& flat, std::span<const int64_t> offsets, std::span<const int64_t> numels,
                   const Tensor& sums)>
    bucket_sums_of_squares;

// What a payload says about a bucket's numbers, computed where they are. words = {log2 of the total
// of `sums` (0 when it is 0 or not finite), the square of that as rounded to the words' dtype, 1
// when the total is 0, 1 when one of the sums is not finite or `non_finite`}: 4 elements,
// contiguous, floating. `sums`: float64, contiguous, on the words' device.
extern Kernel<void(const Tensor& words, const Tensor& sums, bool non_finite)> bucket_words;

// out[0] = probe(x), see below; `out` float64, one element, on x's device; x contiguous, of any
// shape.
extern Kernel<void(const Tensor& x, const Tensor& out)> bucket_probe;

// Of a contiguous floating tensor on the CPU, for the host.
//
// Sum of squares; squares and sums of 256 of them are in the compute_type while they fit there, their total in double.
// Finite exactly when all elements are (a float64 whose square is not counts as the largest that is).
double sum_of_squares(const Tensor& tensor);
// Of n elements there.
double sum_of_squares(const void* data, DType dtype, int64_t n);
bool has_non_finite(const Tensor& tensor);
// The scalar product with a fixed sequence of weights. Linear: the mean of the ranks' probes is the
// probe of the mean, so a hook that does not average betrays itself.
double probe(const Tensor& tensor);

}  // namespace brigade::kernels
