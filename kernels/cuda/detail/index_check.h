// Indices in kernels: their bounds, and rows of a table that they select.
#pragma once

#include <brigade/core/cuda/error.h>
#include <brigade/core/index_error.h>
#include <brigade/core/tensor.h>
#include <brigade/kernels/cuda/detail/launch.h>

namespace brigade::kernels::cuda {

// --- Bounds checks of indices in kernels: indices out of range are reported and skipped (core/cuda/error.h).

// A parameter of the kernel; after the launch the host calls throw_reported_if_blocking.
class IndexCheck {
 public:
  IndexCheck(Device device, const IndexRole& role, int64_t count)
      : report_(brigade::cuda::index_report(device.index)), role_(&role), count_(count), where_(CallSite::current()) {}

  // For indices that another kernel has already checked: reports nothing.
  static IndexCheck silent(int64_t count) { return IndexCheck(count); }

  // Whether the index is in range. A bad index is reported unless another report is pending on the host.
  __device__ bool operator()(int64_t index, int64_t position) const {
    if (is_good(index)) return true;
    if (report_) tell(index, position);
    return false;
  }
  __device__ bool is_good(int64_t index) const { return static_cast<uint64_t>(index) < static_cast<uint64_t>(count_); }

 private:
  explicit IndexCheck(int64_t count) : report_(nullptr), role_(nullptr), count_(count) {}

  __device__ void tell(int64_t index, int64_t position) const {
    const unsigned told = *const_cast<const volatile unsigned*>(&report_->thrown);
    if (atomicCAS(&report_->claimed, told, told + 1) != told) return;
    report_->role = role_;
    report_->index = index;
    report_->position = position;
    report_->count = count_;
    report_->where = where_;
    __threadfence_system();  // the report must be complete before it is marked as written
    *const_cast<volatile unsigned*>(&report_->written) = told + 1;
  }

  brigade::cuda::IndexReport* report_;
  const IndexRole* role_;
  int64_t count_;
  std::source_location where_;
};

// --- Adding to the rows of a table by index, for embedding, index_add and scatter_add (defined in embedding.cu).

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

// --- Rows of a table by index, for embedding and index_select (defined in embedding.cu).

// out[i] = table[indices[i]], rows of any dtype; a bad index is reported and gives zeros. All
// dense.
void gather_rows(const Tensor& out, const Tensor& table, const Tensor& indices, const IndexRole& role);

}  // namespace brigade::kernels::cuda
