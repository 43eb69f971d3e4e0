// Processor and memory of this machine, as the kernel tells them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace brigade::lab {

// "AMD EPYC"; "" where the kernel does not say. Reads below `root`, which is / but in tests.
std::string processor_name(const std::filesystem::path& root = "/");
// Of the whole machine.
int64_t memory_bytes();

}  // namespace brigade::lab
