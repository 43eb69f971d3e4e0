// Processor, memory and load of this machine, as the kernel reports them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace brigade::lab {

// "AMD EPYC"; "" if the kernel does not report it. Reads below `root`, which is / except in tests.
std::string processor_name(const std::filesystem::path& root = "/");
// The memory of the whole machine.
int64_t memory_bytes();
// The number of NUMA nodes; 1 if the kernel does not report it.
int numa_nodes(const std::filesystem::path& root = "/");
// The processors' frequency governor: "performance", or "performance, powersave" if they differ; "" if the kernel
// does not report it (most virtual machines).
std::string frequency_governor(const std::filesystem::path& root = "/");
// The number of running or runnable threads, averaged over the last minute; -1 if the kernel does not report it.
double load_average();
// Bits of a vector register, as Brigade's kernels use them: 512, 256 or 128; 0 for scalar code.
int vector_bits();

}  // namespace brigade::lab
