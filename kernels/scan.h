// Cumulative operations (scans) along a dimension.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

enum class ScanOp : uint8_t { Sum, Product, LogSumExp };

// Element i along `dim` is the sum, product or log(sum(exp)) of elements 0..i, or i..end when `reverse`. Integers and
// bool give int64; half types run in float. LogSumExp is for floating dtypes and stays accurate where exp overflows.
// Throws DTypeError.
extern Kernel<Tensor(const Tensor& x, int dim, ScanOp op, bool reverse)> scan;

// y[i] = b[i] + a[i] y[i - 1] along `dim`, or y[i] = b[i] + a[i] y[i + 1] when `reverse`; beyond
// the end y is 0. Equal shapes and floating dtypes. Throws ShapeError, DTypeError, DeviceError.
extern Kernel<Tensor(const Tensor& b, const Tensor& a, int dim, bool reverse)> linear_recurrence;

}  // namespace brigade::kernels
