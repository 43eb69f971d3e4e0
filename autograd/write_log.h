// Who wrote last: in-place writes to memory that belongs to a process group (buckets of gradients),
// with their lines.
//
// A gradient that was changed by hand after it was reduced, on one rank only, makes the replicas
// drift apart. Each thread keeps its latest writes, so that the change can be named.
#pragma once

#include <brigade/core/tensor.h>

#include <vector>

namespace brigade::autograd {

struct Write {
  const Storage* storage;
  int64_t begin;  // bytes [begin, end) of the storage that may have been written
  int64_t end;
  const char* op;  // "mul_", "clip_grad_norm_"
  SourceLocation where;
  uint64_t number;  // of this thread, from 1
};

// Notes a write, if the storage belongs to a group.
void note_write(const Tensor& tensor, const char* op, SourceLocation where);
// Writes noted on this thread so far.
uint64_t writes_so_far() noexcept;
// Those after number `since` that may have touched `tensor`, oldest first. The log keeps the latest
// kWritesKept.
std::vector<Write> writes_to(const Tensor& tensor, uint64_t since);

inline constexpr size_t kWritesKept = 256;

}  // namespace brigade::autograd
