// Compares bytes with those of rank 0.
#include <brigade/lab/recipes/replicas.h>

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

#include <cstring>

namespace brigade::lab {

namespace {

bool smallest_on_all_ranks(dist::ProcessGroup& group, int64_t own) {
  const Tensor verdict = brigade::tensor<int64_t>({own});
  group.all_reduce(verdict, {.op = dist::ReduceOp::Min, .description = "are the replicas equal"})->wait();
  return verdict.item<int64_t>() == 1;
}

}  // namespace

bool same_on_all_ranks(dist::ProcessGroup& group, const std::vector<Tensor>& tensors) {
  // Who holds a tensor at all comes first: only what all hold can be broadcast.
  std::vector<int64_t> defined;
  for (const Tensor& tensor : tensors)
    defined.push_back(tensor.defined() ? 1 : 0);
  const auto count = static_cast<int64_t>(defined.size());
  const Tensor least = from_values(std::span<const int64_t>(defined), {count});
  const Tensor most = least.clone();
  group.all_reduce(least, {.op = dist::ReduceOp::Min, .description = "who holds what"})->wait();
  group.all_reduce(most, {.op = dist::ReduceOp::Max, .description = "who holds what"})->wait();
  if (least.to_vector<int64_t>() != most.to_vector<int64_t>()) return false;

  int64_t equal = 1;
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    const Tensor own = tensor.detach().contiguous().cpu();
    const Tensor theirs = own.clone();
    group.broadcast(theirs, {.root = 0, .description = "tensor of rank 0, to compare"})->wait();
    if (std::memcmp(theirs.raw_data(), own.raw_data(), own.nbytes()) != 0) equal = 0;
  }
  return smallest_on_all_ranks(group, equal);
}

std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> gradients;
  for (const Tensor& parameter : parameters)
    gradients.push_back(parameter.grad());
  return gradients;
}

}  // namespace brigade::lab
