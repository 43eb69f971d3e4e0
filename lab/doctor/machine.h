// What brigade doctor knows about the machine, and what it finds.
#pragma once

#include <brigade/dist/groups/backends.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace brigade::lab {

// --- How the GPUs of this machine are connected, as `nvidia-smi topo -m` reports it.

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

// --- What brigade doctor knows about the machine: plain values, so that the findings (below) can be
// tested with imaginary machines.

struct NetworkInterface {
  std::string name;  // "eth0"
  std::vector<std::string> addresses;
  bool is_up = false;
  bool is_loopback = false;
  int64_t megabits = -1;  // per second; -1: the kernel does not report it
};

// A GPU on the bus, whether or not it can be used.
struct GpuOnBus {
  std::string address;  // "0000:01:00.0"
  std::string link;     // "16.0 GT/s PCIe x16"; "" if the kernel does not report it
  int numa_node = -1;
};

struct DeviceOfBuild {
  std::vector<std::string> names;
  std::string why_not;  // "" if there is a device
};

struct Machine {
  // Processor and memory
  std::string processor;
  int processors = 0;  // of the system
  int usable = 0;      // available to this process
  double quota = 0;    // CPU quota of the control group, in processors; 0: no limit
  int numa_nodes = 1;
  std::string instruction_set;        // chosen
  std::string instruction_set_asked;  // BRIGADE_CPU; "" when not set
  std::string omp_threads;            // OMP_NUM_THREADS; "" when not set
  bool threads_spin = false;          // OpenMP threads spin if neither OMP_WAIT_POLICY nor GOMP_SPINCOUNT is set
  double load = 0;                    // average of the last minute
  int local_ranks = 0;                // started on this host by a launcher; 0: no launcher, or unknown
  int64_t memory = 0;                 // bytes
  int64_t memory_limit = 0;           // of the control group; 0: none

  // Devices
  DeviceOfBuild cuda;
  bool is_built_with_cuda = false;
  std::string nccl;        // its version; "" if it cannot be loaded, or there is no GPU for it
  std::string nccl_fault;  // why it cannot be loaded
  std::string driver;      // of NVIDIA, as the kernel reports it; "" if none is loaded
  std::vector<GpuOnBus> gpus;
  std::vector<GpuPair> gpu_pairs;  // how they are connected; empty if unknown

  // Ranks on this host and on others
  std::string shared_memory_fault;  // why ranks cannot share memory; "" if they can
  std::string temporary_folder, temporary_fault;
  uint64_t open_files = 0, locked_memory = 0;  // limits; the largest number: no limit
  std::string host, host_address;              // "": the name does not resolve
  std::vector<NetworkInterface> interfaces;
  std::string interface_asked;  // BRIGADE_SOCKET_IFNAME, or else GLOO_SOCKET_IFNAME
};

// Reads this machine. Files are read below `root`, which is / except in tests. Never throws: a value that cannot be
// read keeps its default.
Machine read_machine(const std::filesystem::path& root = "/");

// --- The doctor's findings on a machine: what will be used, why, what is missing, and how to get it.

enum class Health { Ok, Note, Broken };
const char* name(Health health);  // "ok", "note", "broken"

struct Finding {
  std::string section;  // "processor"
  std::string name;     // "instruction set"
  std::string value;    // "x86-64-v3"
  Health health = Health::Ok;
  std::string advice = {};  // what to do; "" if all is well
};

// In display order, by section.
std::vector<Finding> findings_of(const Machine& machine, std::span<const dist::Backend> backends);

// Formats the findings for display: one line each, with a mark and the advice below for those that are not ok.
std::string in_words(std::span<const Finding> findings);

}  // namespace brigade::lab
