// Loads NCCL and resolves its functions; reads the switches for tests.
#include <brigade/dist/groups/nccl/library.h>

#include <brigade/core/error.h>

#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include <dlfcn.h>

namespace brigade::dist::nccl {

// --- Loads NCCL and resolves its functions.

namespace {

constexpr const char* kAdvice =
    "install NCCL 2.14 or later (libnccl2 of NVIDIA's repository, or the package nvidia-nccl-cu12 of PyPI), name its "
    "file in BRIGADE_NCCL_LIBRARY, or use shm or gloo, which stage through the host's memory";

constexpr int kOldestWithSplit = 21800;
constexpr int kOldestWithMemory = 21900;

// `handle` is never closed: the functions are used for the life of the process.
Library from(void* handle, const std::string& path) {
  Library found = {};
  const auto find = [&](auto& function, const char* name) {
    void* const address = dlsym(handle, name);
    if (!address) throw DistError("NCCL: {} has no {}; {}", path, name, kAdvice);
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
  };
  find(found.get_version, "ncclGetVersion");
  if (found.get_version(&found.version) != Result::Success || found.version < kOldestVersion)
    throw DistError("NCCL: {} is version {}, and 2.14 is the oldest that will do; {}", path,
                    version_in_words(found.version), kAdvice);
  find(found.get_error_string, "ncclGetErrorString");
  find(found.get_last_error, "ncclGetLastError");
  find(found.get_unique_id, "ncclGetUniqueId");
  find(found.comm_init_rank_config, "ncclCommInitRankConfig");
  find(found.comm_get_async_error, "ncclCommGetAsyncError");
  find(found.comm_finalize, "ncclCommFinalize");
  find(found.comm_destroy, "ncclCommDestroy");
  find(found.comm_abort, "ncclCommAbort");
  find(found.all_reduce, "ncclAllReduce");
  find(found.broadcast, "ncclBroadcast");
  find(found.all_gather, "ncclAllGather");
  find(found.reduce_scatter, "ncclReduceScatter");
  find(found.send, "ncclSend");
  find(found.recv, "ncclRecv");
  find(found.group_start, "ncclGroupStart");
  find(found.group_end, "ncclGroupEnd");
  if (found.version >= kOldestWithSplit) find(found.comm_split, "ncclCommSplit");
  if (found.version < kOldestWithMemory) return found;
  find(found.mem_alloc, "ncclMemAlloc");
  find(found.mem_free, "ncclMemFree");
  find(found.comm_register, "ncclCommRegister");
  find(found.comm_deregister, "ncclCommDeregister");
  return found;
}

Library load_first() {
  if (const char* given = std::getenv("BRIGADE_NCCL_LIBRARY"); given && *given) return load(given);
  if (dlsym(RTLD_DEFAULT, "ncclGetVersion")) return from(RTLD_DEFAULT, "the one in this program");
  return load("libnccl.so.2");
}

}  // namespace

std::string version_in_words(int version) {
  // Up to 2.8, the version number has one digit for the minor version.
  const int unit = version < 10000 ? 1000 : 10000;
  return fmt::format("{}.{}.{}", version / unit, version % unit / 100, version % 100);
}

Library load(const std::string& path) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* const why = dlerror();
    throw DistError("NCCL cannot be loaded: {}; {}", why ? why : path, kAdvice);
  }
  return from(handle, path);
}

const Library& library() {
  static const Library once = load_first();
  return once;
}

// --- Reads the switches, and sets the environment variables that NCCL reads when it connects its peers.

namespace {

bool is_on(const char* name) {
  const char* const asked = std::getenv(name);
  return asked && *asked && std::string_view(asked) != "0";
}

}  // namespace

bool may_share_gpu() { return is_on("BRIGADE_NCCL_SHARE_GPU"); }
bool connects_one_rank() { return is_on("BRIGADE_NCCL_ONE_RANK"); }

// NCCL identifies a host by the hash of its name, which NCCL_HOSTID replaces (NCCL's documentation, "Environment
// Variables"). Transports over host memory or a switch are disabled.
void pose_as_host(int rank) {
  setenv("NCCL_HOSTID", ("rank" + std::to_string(rank)).c_str(), 1);
  setenv("NCCL_SOCKET_IFNAME", "=lo", 0);
  setenv("NCCL_NET", "Socket", 0);
  setenv("NCCL_IB_DISABLE", "1", 0);
  setenv("NCCL_MNNVL_ENABLE", "0", 0);
  setenv("NCCL_NVLS_ENABLE", "0", 0);
}

}  // namespace brigade::dist::nccl
