// Allocates memory from NCCL, and frees it when the device can no longer use it.
#include <brigade/dist/groups/nccl/registered_memory.h>

#include <brigade/core/shape.h>
#include <brigade/dist/groups/group_memory.h>

#include <exception>
#include <utility>

namespace brigade::dist::nccl {

RegisteredMemory::RegisteredMemory(const Library& library, std::weak_ptr<Communicator> communicator,
                                   std::shared_ptr<DeviceStream> stream, Device device)
    : library_(library), communicator_(std::move(communicator)), stream_(std::move(stream)), device_(device) {}

RegisteredMemory::~RegisteredMemory() {
  returned_.insert(returned_.end(), waiting_.begin(), waiting_.end());
  if (returned_.empty()) return;
  try {
    device_runtime(device_).synchronize(device_.index);
    free_all(returned_);
  } catch (const std::exception&) {
    // The device is lost, and the memory with it.
  }
}

Tensor RegisteredMemory::allocate(int64_t numel, DType dtype) {
  const size_t bytes = checked_bytes(numel, itemsize(dtype));
  const std::shared_ptr<Communicator> communicator = communicator_.lock();
  if (!library_.mem_alloc || bytes == 0 || !communicator) return {};
  Block block;
  {
    const DeviceStreamGuard guard(*stream_);  // the device is current
    if (library_.mem_alloc(&block.data, bytes) != Result::Success) return {};
  }
  block.registration = communicator->register_memory(block.data, bytes);
  struct Owner {
    std::shared_ptr<RegisteredMemory> memory;
    Block block;
  };
  const auto give_back = [](void*, void* context, size_t) {
    const std::unique_ptr<Owner> owner(static_cast<Owner*>(context));
    owner->memory->take_back(owner->block);
  };
  return memory_of_group(this, numel, dtype, device_, [&](size_t) {
    return Allocation{block.data, new Owner{shared_from_this(), block}, give_back};
  });
}

// Runs on the thread that releases the last tensor.
void RegisteredMemory::take_back(const Block& block) {
  const std::lock_guard lock(mutex_);
  returned_.push_back(block);
}

void RegisteredMemory::free_all(std::vector<Block>& blocks) {
  const DeviceStreamGuard guard(*stream_);
  const std::shared_ptr<Communicator> communicator = communicator_.lock();
  for (const Block& block : blocks) {
    if (communicator) communicator->deregister(block.registration);
    library_.mem_free(block.data);
  }
  blocks.clear();
}

bool RegisteredMemory::got_some_back() {
  const std::lock_guard lock(mutex_);
  return !returned_.empty();
}

// Does not wait for the device under the lock, because the thread that ends a collective which blocks the device may
// itself return memory.
void RegisteredMemory::sweep() {
  if ((waiting_.empty() && !got_some_back()) || device_runtime(device_).is_capturing(device_.index)) return;
  if (!waiting_.empty() && reached_->query()) free_all(waiting_);
  if (!waiting_.empty() || !got_some_back()) return;
  {
    const std::lock_guard lock(mutex_);
    waiting_.swap(returned_);
  }
  if (!reached_) reached_ = device_runtime(device_).new_event(device_.index);
  reached_->record();
}

}  // namespace brigade::dist::nccl
