// How the GPUs of this machine reach each other, as `nvidia-smi topo -m` tells it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace brigade::lab {

struct GpuPair {
  int first = 0, second = 0;  // numbers of the driver
  std::string way;            // "NV18", "PIX", "SYS"
};

// From the program's table; what is not a GPU (network cards, affinities) is passed over.
std::vector<GpuPair> gpu_pairs_in(const std::string& table);
// Of this machine; empty where the program is not there, or does not answer within some seconds.
std::vector<GpuPair> read_gpu_pairs();

// "18 NVLinks", "within one PCIe switch"
std::string way_in_words(const std::string& way);
// "18 NVLinks (NV18): 0-1; between sockets (SYS): 0-2, 1-2"
std::string in_words(const std::vector<GpuPair>& pairs);

}  // namespace brigade::lab
