// What brigade doctor reads of the machine: plain values, so that the judgement on them
// (lab/doctor/findings.h) can be tested with machines that are not there.
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
  int64_t megabits = -1;  // per second; -1: the kernel does not say
};

// A GPU on the bus, whether or not anything can use it.
struct GpuOnBus {
  std::string address;  // "0000:01:00.0"
  std::string link;     // "16.0 GT/s PCIe x16"; "" where the kernel does not say
  int numa_node = -1;
};

struct DeviceOfBuild {
  std::vector<std::string> names;
  std::string why_not;  // "" where there is one
};

struct Machine {
  // Processor and memory
  std::string processor;
  int processors = 0;  // that the system has
  int usable = 0;      // that this process may run on
  double quota = 0;    // processors' worth of time that its control group has; 0: no limit
  int numa_nodes = 1;
  std::string instruction_set;        // chosen
  std::string instruction_set_asked;  // BRIGADE_CPU; "" when not set
  std::string omp_threads;            // OMP_NUM_THREADS; "" when not set
  bool threads_spin = false;          // as OpenMP's do where neither OMP_WAIT_POLICY nor GOMP_SPINCOUNT is set
  double load = 0;                    // average of the last minute
  int local_ranks = 0;                // that a launcher has started on this host; 0: none has, or it does not say
  int64_t memory = 0;                 // bytes
  int64_t memory_limit = 0;           // of its control group; 0: none

  // Devices
  DeviceOfBuild cuda;
  bool is_built_with_cuda = false;
  std::string nccl;        // its version; "" where it cannot be loaded, or there is no GPU for it
  std::string nccl_fault;  // why it cannot
  std::string driver;      // of NVIDIA, as the kernel tells it; "" where there is none
  std::vector<GpuOnBus> gpus;
  std::vector<GpuPair> gpu_pairs;  // how they reach each other; empty where that is not known

  // Ranks on this host and on others
  std::string shared_memory_fault;  // why ranks cannot share memory; "" where they can
  std::string temporary_folder, temporary_fault;
  uint64_t open_files = 0, locked_memory = 0;  // limits; the largest number: none
  std::string host, host_address;              // "": the name leads nowhere
  std::vector<NetworkInterface> interfaces;
  std::string interface_asked;  // BRIGADE_SOCKET_IFNAME, or else GLOO_SOCKET_IFNAME
};

// Of the machine that this runs on. Reads files below `root`, which is / but in tests. Never throws:
// what cannot be read keeps its first value.
Machine read_machine(const std::filesystem::path& root = "/");

}  // namespace brigade::lab
