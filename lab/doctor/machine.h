// What brigade doctor knows about the machine: plain values, so that the findings (lab/doctor/findings.h) can be
// tested with imaginary machines.
#pragma once

#include <brigade/lab/doctor/gpu_topology.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace brigade::lab {

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

}  // namespace brigade::lab
