// Backends: the kinds of process group that init_process_group can make, by name.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace brigade::dist {

class Store;
struct HostLayout;

struct Backend {
  std::string name;   // "shm"
  std::string reach;  // in messages: "processes of one host"
  // Called on each rank; the ranks meet in the store, under `prefix`.
  std::function<ProcessGroupPtr(std::shared_ptr<Store> store, int rank, int size, std::chrono::milliseconds timeout,
                                const std::string& prefix)>
      make;
  std::string missing = {};  // why this build cannot make it, and what to do; "" when it can
};

// Registers a custom backend: define a static object, or construct one in main before init_process_group. Throws
// ValueError when the name is taken.
struct AddBackend {
  explicit AddBackend(Backend backend);
};

// The built-in backends (shm, gloo, hosts, nccl), then the registered ones.
const std::vector<Backend>& all_backends();
// All names that init_process_group accepts: "auto, shm, gloo, hosts, nccl".
std::string backend_names();
// Resolves "auto": the fastest backend for this placement of ranks on hosts.
const char* fastest_backend(const HostLayout& layout, int size);
// Also finds backends that this build cannot make. Throws DistError that lists the known ones.
const Backend& find_backend(const std::string& name);

}  // namespace brigade::dist
