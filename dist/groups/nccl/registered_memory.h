// Bucket memory allocated by NCCL and registered with a communicator: collectives on it need no copy into NCCL's
// buffers, and can run in the network where the hardware supports it.
#pragma once

#include <brigade/core/device_runtime.h>
#include <brigade/core/tensor.h>
#include <brigade/dist/groups/nccl/communicator.h>

#include <memory>
#include <mutex>
#include <vector>

namespace brigade::dist::nccl {

// Unlike allocator memory, such memory is unmapped as soon as it is freed. So returned blocks are kept until the device
// can no longer use them; the group frees them with sweep(). Tensors may outlive the communicator and the group; the
// last owner waits for the device.
class RegisteredMemory : public std::enable_shared_from_this<RegisteredMemory> {
 public:
  // `stream`: any stream of the device.
  RegisteredMemory(const Library& library, std::weak_ptr<Communicator> communicator,
                   std::shared_ptr<DeviceStream> stream, Device device);
  ~RegisteredMemory();
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  // A 1-d uninitialized tensor. Undefined when NCCL has no such memory (before 2.19) or refuses, and for zero elements.
  Tensor allocate(int64_t numel, DType dtype);
  // Frees the returned blocks that the current stream has passed; does nothing during graph capture. Freeing may wait
  // for the device, as cudaFree does.
  void sweep();

 private:
  struct Block {
    void* data = nullptr;
    void* registration = nullptr;
  };

  void take_back(const Block& block);
  bool got_some_back();
  void free_all(std::vector<Block>& blocks);

  const Library& library_;
  const std::weak_ptr<Communicator> communicator_;
  const std::shared_ptr<DeviceStream> stream_;
  const Device device_;
  std::mutex mutex_;
  std::vector<Block> returned_;  // guarded by the mutex; the next two belong to the sweeping thread
  std::vector<Block> waiting_;   // blocks that wait for `reached_`
  std::unique_ptr<DeviceEvent> reached_;
};

}  // namespace brigade::dist::nccl
