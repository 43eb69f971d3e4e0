// Bucket memory, for every kind of group.
#include <brigade/dist/groups/group_memory.h>

#include <brigade/core/error.h>
#include <brigade/core/factory.h>
#include <brigade/core/shape.h>
#include <brigade/dist/groups/process_group.h>

#include <utility>

namespace brigade::dist {

Tensor memory_of_group(const void* home, int64_t numel, DType dtype, Device device,
                       const std::function<Allocation(size_t bytes)>& allocate) {
  if (numel < 0) throw ShapeError("allocate: the number of elements must not be negative, got {}", numel);
  const size_t bytes = checked_bytes(numel, itemsize(dtype));
  auto storage = make_intrusive<Storage>(allocate(bytes), bytes, device, home);
  return Tensor(make_intrusive<TensorImpl>(std::move(storage), Shape{numel}, Shape{1}, 0, dtype));
}

Tensor room_to_exchange(ProcessGroup& group, int64_t numel, DType dtype, Device device) {
  return device == Device() ? group.allocate(numel, dtype) : empty({numel}, {dtype, device});
}

}  // namespace brigade::dist
