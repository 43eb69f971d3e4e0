// Reads the switches, and sets the environment variables that NCCL reads when it connects its peers.
#include <brigade/dist/groups/nccl/test_switches.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace brigade::dist::nccl {

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
