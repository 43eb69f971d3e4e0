// Moves parameters into the buffers of their owners: each keeps its shape, history and version.
#include <brigade/dist/ddp/detail/owner_buffer.h>

#include <brigade/core/device_runtime.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <map>
#include <tuple>
#include <utility>

namespace brigade::dist::detail {
namespace {

constexpr size_t kAlignment = 64;  // of slots, in bytes

int64_t slot_numel(const Tensor& parameter) {
  const auto step = static_cast<int64_t>(kAlignment / parameter.itemsize());
  return (parameter.numel() + step - 1) / step * step;
}

// A part of the buffer as separate storage: a write to one parameter does not count as one to its neighbors.
StoragePtr part_of(const Tensor& buffer, int64_t begin, const Tensor& parameter) {
  auto* const data = static_cast<char*>(buffer.raw_data()) + begin * static_cast<int64_t>(buffer.itemsize());
  const auto release = [](void*, void* context, size_t) { delete static_cast<StoragePtr*>(context); };
  StoragePtr part(new Storage({data, new StoragePtr(buffer.storage()), release}, parameter.nbytes(), buffer.device()));
  // Saved tensors of existing graphs compare their version with this one.
  while (part->version() < parameter.version())
    part->bump_version();
  return part;
}

}  // namespace

OwnerBuffer::OwnerBuffer(ProcessGroup& group, int owner, std::vector<size_t> parameters, std::span<const Tensor> all)
    : owner_(owner), parameters_(std::move(parameters)) {
  int64_t total = 0;
  for (const size_t i : parameters_)
    total += slot_numel(all[i]);
  const Tensor& first = all[parameters_.front()];
  memory_ =
      first.is_cuda() ? group.allocate(total, first.dtype(), first.device()) : group.allocate(total, first.dtype());
  kernels::fill(memory_, 0.0);
  int64_t begin = 0;
  for (const size_t i : parameters_) {
    const Tensor& parameter = all[i];
    StoragePtr part = part_of(memory_, begin, parameter);
    copy_bytes(part->data(), part->device(), parameter.raw_data(), parameter.device(), parameter.nbytes());
    addresses_.push_back(part->data());
    parameter.impl()->storage = std::move(part);
    parameter.impl()->offset = 0;
    begin += slot_numel(parameter);
  }
}

std::vector<OwnerBuffer> make_owner_buffers(ProcessGroup& group, std::span<const Tensor> all,
                                            std::span<const int> owners, SourceLocation where) {
  std::map<std::tuple<int, DType, DeviceType, int>, std::vector<size_t>> kinds;
  for (size_t i = 0; i < all.size(); ++i) {
    const Tensor& each = all[i];
    if (!each.requires_grad() || each.numel() == 0) continue;
    if (!each.is_contiguous()) {
      throw ValueError(
          where,
          "use_parameters_as_bucket_view: parameter {} ({}) is not contiguous, and could not be sent as it "
          "lies; make it from a contiguous() one",
          i, describe(each));
    }
    if (each.storage()->use_count() > 1) {
      throw ValueError(where,
                       "use_parameters_as_bucket_view: parameter {} ({}) shares its memory with another tensor, which "
                       "would lose the connection; call it while there is no view and no detached one",
                       i, describe(each));
    }
    kinds[{owners[i], each.dtype(), each.device().type, each.device().index}].push_back(i);
  }
  std::vector<OwnerBuffer> buffers;
  buffers.reserve(kinds.size());
  for (auto& [kind, parameters] : kinds)
    buffers.emplace_back(group, std::get<0>(kind), std::move(parameters), all);
  return buffers;
}

}  // namespace brigade::dist::detail
