// The parameters of one owner, contiguous in one buffer that is broadcast as a whole.
#pragma once

#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/work.h>

#include <cstddef>
#include <span>
#include <vector>

namespace brigade::dist::detail {

class OwnerBuffer {
 public:
  // `parameters`: positions in `all`, of one dtype and device. Moves them into the buffer; each keeps its own
  // version.
  OwnerBuffer(ProcessGroup& group, int owner, std::vector<size_t> parameters, std::span<const Tensor> all);

  int owner() const noexcept { return owner_; }
  const Tensor& memory() const noexcept { return memory_; }
  const std::vector<size_t>& parameters() const noexcept { return parameters_; }
  // Whether the k-th parameter still lives in this buffer.
  bool holds(size_t k, const Tensor& parameter) const { return parameter.raw_data() == addresses_[k]; }

 private:
  int owner_;
  Tensor memory_;
  std::vector<size_t> parameters_;
  std::vector<const void*> addresses_;
};

// Makes a buffer for each owner, dtype and device, over the trainable tensors of `all`. Throws ValueError like
// use_parameters_as_bucket_view().
std::vector<OwnerBuffer> make_owner_buffers(ProcessGroup& group, std::span<const Tensor> all,
                                            std::span<const int> owners, SourceLocation where);

}  // namespace brigade::dist::detail
