// Processor, memory and load of this machine, as the kernel tells them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace brigade::lab {

// "AMD EPYC"; "" where the kernel does not say. Reads below `root`, which is / but in tests.
std::string processor_name(const std::filesystem::path& root = "/");
// Of the whole machine.
int64_t memory_bytes();
// Memory nodes that processors have of their own; 1 where the kernel does not say.
int numa_nodes(const std::filesystem::path& root = "/");
// How the processors choose their frequency: "performance", or "performance, powersave" where they
// differ; "" where the kernel does not say (most virtual machines).
std::string frequency_governor(const std::filesystem::path& root = "/");
// Threads that ran or wanted to, on average over the last minute; -1 where the kernel does not say.
double load_average();
// Bits of a vector register, as the kernels use them: 512, 256 or 128; 0 for scalar code.
int vector_bits();

}  // namespace brigade::lab
