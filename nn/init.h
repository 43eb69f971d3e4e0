// Initialisation in place, with PyTorch's names and distributions, from the calling thread's generator. Floating
// dtypes.
//
// fan_in of a weight [out, in, kernel...] is in * kernel elements, fan_out is out * kernel elements. Throws ShapeError
// for fewer than two dimensions where fans are needed.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade::nn::init {

void uniform_(const Tensor& tensor, double low = 0, double high = 1);
void normal_(const Tensor& tensor, double mean = 0, double stddev = 1);
void constant_(const Tensor& tensor, double value);
// Bound gain * sqrt(3 / fan_in) with gain sqrt(2 / (1 + a^2)) (He et al., arXiv 1502.01852).
void kaiming_uniform_(const Tensor& tensor, double a = 0);
void kaiming_normal_(const Tensor& tensor, double a = 0);
// Bound gain * sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, AISTATS 2010).
void xavier_uniform_(const Tensor& tensor, double gain = 1);
void xavier_normal_(const Tensor& tensor, double gain = 1);

struct Fans {
  int64_t in, out;
};
Fans fans_of(const Tensor& tensor);

}  // namespace brigade::nn::init
