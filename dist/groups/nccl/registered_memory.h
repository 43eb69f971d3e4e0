// Memory of NCCL's own for buckets, registered with a communicator: collectives on it need no copy
// into NCCL's buffers, and can be done by the network itself where that can.
#pragma once

#include <brigade/core/device_runtime.h>
#include <brigade/core/tensor.h>
#include <brigade/dist/groups/nccl/communicator.h>

#include <memory>
#include <mutex>
#include <vector>

namespace brigade::dist::nccl {

// Unlike the allocator's, such memory is gone at once when it is freed. So what tensors give back is
// kept until the device cannot use it any more: the group asks with sweep(). Tensors may outlive the
// communicator and the group; whoever is last waits for the device.
class RegisteredMemory : public std::enable_shared_from_this<RegisteredMemory> {
 public:
  // `stream` is one of the device.
  RegisteredMemory(const Library& library, std::weak_ptr<Communicator> communicator,
                   std::shared_ptr<DeviceStream> stream, Device device);
  ~RegisteredMemory();
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  // 1-d, uninitialised. Undefined where NCCL has no such memory (before 2.19) or refuses, and for no
  // elements.
  Tensor allocate(int64_t numel, DType dtype);
  // Frees what was given back before everything that the current stream has come to, if there is
  // something; not while a graph is captured. Freeing may wait for the device, as cudaFree does.
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
  std::vector<Block> returned_;  // under the mutex; what follows is of the thread that sweeps
  std::vector<Block> waiting_;   // for `reached_`
  std::unique_ptr<DeviceEvent> reached_;
};

}  // namespace brigade::dist::nccl
