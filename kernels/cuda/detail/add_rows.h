// Adding to the rows of a table by index, for embedding, index_add and scatter_add (defined in
// embedding.cu).
#pragma once

#include <brigade/kernels/cuda/detail/index_check.h>

namespace brigade::kernels::cuda {

struct AddRows {
  int64_t padding_idx = -1;  // the row that gets no additions; -1: none
  bool accumulate = false;   // adds to the existing rows; else every row is overwritten
  bool mean = false;         // averages the rows of an index; floating dtypes
};
// table [rows, width], `source` [n, width], `indices` [n], all dense; any dtype except bool. The rows of an index are
// added in the order of the positions, in parts if there are many, half types in float. Bad indices are reported to
// `check` and skipped. Throws ShapeError for more than 2^31 - 1 rows or indices, DTypeError for bool.
void add_rows(const Tensor& table, const Tensor& source, const Tensor& indices, const IndexCheck& check,
              const AddRows& how);

}  // namespace brigade::kernels::cuda
