// The part of each rank in a collective once all ranks have arrived: it reduces or copies its share of the elements,
// directly in its peers' memory.
#include <brigade/dist/groups/arithmetic.h>
#include <brigade/dist/groups/shm/shared_group.h>

#include <array>
#include <cstring>
#include <utility>

namespace brigade::dist::shm {

std::pair<int64_t, int64_t> SharedGroup::share(int64_t count, DType dtype) const {
  return share_of(rank(), size(), count, dtype);
}

WorkPtr SharedGroup::show(const Tensor& tensor, const CollectiveOptions& options, Peers peers) {
  return post(CollectiveKind::ReduceScatter, tensor, Tensor(), true, options,
              [peers = std::move(peers)](std::span<void* const> all) { peers->assign(all.begin(), all.end()); });
}

WorkPtr SharedGroup::gather_shares(const Tensor& tensor, const CollectiveOptions& options) {
  const int64_t count = tensor.numel();
  const DType dtype = tensor.dtype();
  return post(CollectiveKind::AllGather, tensor, Tensor(), true, options,
              [this, count, dtype](std::span<void* const> peers) {
                char* to = static_cast<char*>(peers[static_cast<size_t>(rank())]);
                for (int r = 0; r < size(); ++r) {
                  const auto [begin, end] = share_of(r, size(), count, dtype);
                  const size_t skip = static_cast<size_t>(begin) * itemsize(dtype);
                  const size_t bytes = static_cast<size_t>(end - begin) * itemsize(dtype);
                  if (r != rank() && bytes > 0)
                    std::memcpy(to + skip, static_cast<const char*>(peers[static_cast<size_t>(r)]) + skip, bytes);
                }
              });
}

WorkPtr SharedGroup::do_all_reduce(const Tensor& tensor, const CollectiveOptions& options) {
  const int64_t count = tensor.numel();
  const DType dtype = tensor.dtype();
  return post(CollectiveKind::AllReduce, tensor, Tensor(), true, options,
              [this, count, dtype, op = options.op, sums = options.slot_sums](std::span<void* const> peers) {
                reduce_share(rank(), peers, count, dtype, op, sums.get());
              });
}

WorkPtr SharedGroup::do_broadcast(const Tensor& tensor, const CollectiveOptions& options) {
  const size_t bytes = tensor.nbytes();
  const bool is_root = rank() == options.root;
  return post(CollectiveKind::Broadcast, tensor, Tensor(), is_root, options,
              [this, bytes, is_root, root = options.root](std::span<void* const> peers) {
                if (!is_root && bytes > 0)
                  std::memcpy(peers[static_cast<size_t>(rank())], peers[static_cast<size_t>(root)], bytes);
              });
}

WorkPtr SharedGroup::do_all_gather(const Tensor& output, const Tensor& input, const CollectiveOptions& options) {
  const size_t bytes = input.nbytes();
  return post(CollectiveKind::AllGather, input, output, true, options, [output, bytes](std::span<void* const> peers) {
    char* to = static_cast<char*>(output.raw_data());
    for (size_t r = 0; r < peers.size() && bytes > 0; ++r)
      std::memcpy(to + r * bytes, peers[r], bytes);
  });
}

WorkPtr SharedGroup::do_reduce_scatter(const Tensor& output, const Tensor& input, const CollectiveOptions& options) {
  const int64_t part = output.numel();
  return post(CollectiveKind::ReduceScatter, input, output, true, options,
              [this, output, part, op = options.op](std::span<void* const> peers) {
                const auto skip = static_cast<int64_t>(output.itemsize()) * rank() * part;
                std::array<void*, kMaxRanks> inputs{};
                for (size_t r = 0; r < peers.size(); ++r)
                  inputs[r] = static_cast<char*>(peers[r]) + skip;
                void* outputs[] = {output.raw_data()};
                if (part > 0)
                  reduce_elements(std::span<void* const>(inputs.data(), peers.size()), outputs, output.dtype(), op, 0,
                                  part);
              });
}

WorkPtr SharedGroup::do_barrier(const CollectiveOptions& options) {
  return post(CollectiveKind::Barrier, Tensor(), Tensor(), false, options, nullptr);
}

}  // namespace brigade::dist::shm
