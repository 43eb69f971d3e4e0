// Rows of a table by index, for embedding and index_select (defined in embedding.cu).
#pragma once

#include <brigade/core/index_error.h>
#include <brigade/core/tensor.h>

namespace brigade::kernels::cuda {

// out[i] = table[indices[i]], rows of any dtype; a bad index is reported and gives zeros. All
// dense.
void gather_rows(const Tensor& out, const Tensor& table, const Tensor& indices, const IndexRole& role);

}  // namespace brigade::kernels::cuda
