// Packs tensors into chunks, broadcasts the chunks, and unpacks them: in host memory, or on a device that the group
// reaches.
#include <brigade/dist/ddp/detail/broadcast_coalesced.h>

#include <brigade/core/device_runtime.h>
#include <brigade/core/factory.h>
#include <brigade/dist/comm_hooks/comm_hook.h>
#include <brigade/kernels/elementwise.h>

#include <cstring>
#include <span>

namespace brigade::dist {
namespace {

constexpr int64_t kChunkBytes = 25 << 20;

using Part = std::span<const Tensor>;

int64_t bytes_of(Part tensors) {
  int64_t bytes = 0;
  for (const Tensor& tensor : tensors)
    bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

// Runs of tensors of one device that fit into one chunk each; a tensor is never split.
std::vector<Part> chunks_of(const std::vector<Tensor>& tensors) {
  std::vector<Part> chunks;
  size_t begin = 0;
  while (begin < tensors.size()) {
    const Device device = tensors[begin].device();
    size_t end = begin;
    int64_t bytes = 0;
    while (end < tensors.size() && tensors[end].device() == device &&
           (end == begin || bytes + static_cast<int64_t>(tensors[end].nbytes()) <= kChunkBytes)) {
      bytes += static_cast<int64_t>(tensors[end++].nbytes());
    }
    chunks.emplace_back(tensors.data() + begin, end - begin);
    begin = end;
  }
  return chunks;
}

// Concatenates the tensors' bytes on their device; on an accelerator the copies are queued.
void pack(Part tensors, const Tensor& chunk) {
  const Device device = chunk.device();
  auto* const to = static_cast<char*>(chunk.raw_data());
  size_t at = 0;
  for (const Tensor& tensor : tensors) {
    const Tensor source = kernels::contiguous(tensor);
    copy_bytes(to + at, device, source.raw_data(), device, source.nbytes());
    at += source.nbytes();
  }
}

// Concatenates the tensors' bytes in host memory. Those of a device are copied there together.
void gather_bytes(Part tensors, const Tensor& memory) {
  const Device device = tensors.front().device();
  if (device == Device()) return pack(tensors, memory);
  const Tensor there = empty({memory.numel()}, {kUInt8, device});
  pack(tensors, there);
  copy_bytes(memory.raw_data(), Device(), there.raw_data(), device, there.nbytes());
}

// Writes the tensors whose bytes differ from those in host memory.
void take_bytes(Part part, const Tensor& memory) {
  // What this rank holds: CPU tensors are compared in place.
  const bool on_cpu = part.front().device() == Device();
  const Tensor own = on_cpu ? Tensor() : empty({memory.numel()}, kUInt8);
  if (!on_cpu) gather_bytes(part, own);
  const auto* const root = static_cast<const char*>(memory.raw_data());
  size_t at = 0;
  for (const Tensor& target : part) {
    const size_t size = target.nbytes();
    const Tensor now = on_cpu ? kernels::contiguous(target) : Tensor();
    const void* const held = on_cpu ? now.raw_data() : static_cast<const char*>(own.raw_data()) + at;
    if (size > 0 && std::memcmp(held, root + at, size) != 0) {
      const Tensor received = empty(target.sizes(), target.dtype());
      std::memcpy(received.raw_data(), root + at, size);
      kernels::copy(target, received);
      target.bump_version();
    }
    at += size;
  }
}

// Writes all tensors, by work that is queued on the device. `written`: those that count as written.
void unpack(Part part, const std::vector<uint8_t>& written, const Tensor& chunk) {
  const Device device = chunk.device();
  const auto* const from = static_cast<const char*>(chunk.raw_data());
  size_t at = 0;
  for (size_t i = 0; i < part.size(); ++i) {
    const Tensor& target = part[i];
    const bool is_dense = target.is_contiguous();
    const Tensor received = is_dense ? target : empty(target.sizes(), target.options());
    copy_bytes(received.raw_data(), device, from + at, device, target.nbytes());
    if (!is_dense) kernels::copy(target, received);
    if (written[i]) target.bump_version();
    at += target.nbytes();
  }
}

// Broadcasts one chunk. The Work keeps the tensors alive.
WorkPtr begin_broadcast(ProcessGroup& group, Part part, std::vector<uint8_t> written, int root, const Topic& topic,
                        SourceLocation where) {
  const int64_t bytes = bytes_of(part);
  const bool on_device = part.front().is_cuda() && group.reaches(part.front().device());
  const Tensor chunk = on_device ? empty({bytes}, {kUInt8, part.front().device()}) : group.allocate(bytes, kUInt8);
  const bool is_root = group.rank() == root;
  if (is_root && on_device) pack(part, chunk);
  if (is_root && !on_device) gather_bytes(part, chunk);
  WorkPtr sent = group.broadcast(chunk, {.root = root, .topic = topic}, where);
  return then(std::move(sent), [chunk, is_root, on_device, written = std::move(written),
                                targets = std::vector<Tensor>(part.begin(), part.end())] {
    if (is_root) return;
    if (on_device) {
      unpack(targets, written, chunk);
    } else {
      take_bytes(targets, chunk);
    }
  });
}

std::vector<uint8_t> written_of(const std::vector<Tensor>& tensors, Part part, const IsUnwritten& is_unwritten) {
  const auto first = static_cast<size_t>(part.data() - tensors.data());
  std::vector<uint8_t> written(part.size(), 1);
  for (size_t i = 0; i < part.size() && is_unwritten; ++i)
    written[i] = !is_unwritten(first + i);
  return written;
}

}  // namespace

void broadcast_coalesced(ProcessGroup& group, const std::vector<Tensor>& tensors, int root, const Topic& topic,
                         SourceLocation where, const IsUnwritten& is_unwritten) {
  if (group.size() == 1) return;
  for (const Part part : chunks_of(tensors))
    begin_broadcast(group, part, written_of(tensors, part, is_unwritten), root, topic, where)->wait();
}

std::vector<WorkPtr> begin_broadcast_coalesced(ProcessGroup& group, const std::vector<Tensor>& tensors, int root,
                                               const Topic& topic, SourceLocation where) {
  std::vector<WorkPtr> works;
  if (group.size() == 1) return works;
  for (const Part part : chunks_of(tensors))
    works.push_back(begin_broadcast(group, part, written_of(tensors, part, {}), root, topic, where));
  return works;
}

}  // namespace brigade::dist
