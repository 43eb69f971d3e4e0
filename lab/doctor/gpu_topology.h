// How the GPUs of this machine are connected, as `nvidia-smi topo -m` reports it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace brigade::lab {

struct GpuPair {
  int first = 0, second = 0;  // device numbers of the driver
  std::string way;            // "NV18", "PIX", "SYS"
};

// Parses the program's table. Skips columns and rows other than GPUs (network cards, affinities).
std::vector<GpuPair> gpu_pairs_in(const std::string& table);
// The pairs of this machine; empty when nvidia-smi is missing, or does not answer within 10 seconds.
std::vector<GpuPair> read_gpu_pairs();

// "18 NVLinks", "within one PCIe switch"
std::string way_in_words(const std::string& way);
// "18 NVLinks (NV18): 0-1; between sockets (SYS): 0-2, 1-2"
std::string in_words(const std::vector<GpuPair>& pairs);

}  // namespace brigade::lab
