// Dropout (Srivastava et al., JMLR 15, 2014), inverted: kept elements are scaled by 1 / (1 - p).
#pragma once

#include <brigade/core/random.h>
#include <brigade/core/tensor.h>

namespace brigade {

// Returns x itself unless `training`. Takes numbers from the calling thread's generator. Throws ValueError unless
// 0 <= p <= 1.
Tensor dropout(const Tensor& x, double p = 0.5, bool training = true, SourceLocation where = SourceLocation::current());

}  // namespace brigade
