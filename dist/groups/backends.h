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
  // Called on each rank; the ranks meet in the store, below `prefix`.
  std::function<ProcessGroupPtr(std::shared_ptr<Store> store, int rank, int size, std::chrono::milliseconds timeout,
                                const std::string& prefix)>
      make;
  std::string missing = {};  // why this build cannot make it, and what to do; "" when it can
};

// Makes a backend of your own known, from a static object of your program or in main before
// init_process_group. Throws ValueError for a name that is taken.
struct AddBackend {
  explicit AddBackend(Backend backend);
};

// Brigade's own (shm, gloo, hosts, nccl), then those that were added.
const std::vector<Backend>& all_backends();
// "auto, shm, gloo, hosts, nccl": all that init_process_group takes.
std::string backend_names();
// "auto": the fastest way between ranks that lie like this.
const char* fastest_backend(const HostLayout& layout, int size);
// Also one that this build cannot make. Throws DistError that names the known ones.
const Backend& find_backend(const std::string& name);

}  // namespace brigade::dist
