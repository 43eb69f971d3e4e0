// Reads the kernel's file about the processor, and asks for the number of pages.
#include <brigade/lab/hardware.h>

#include <algorithm>
#include <fstream>

#include <unistd.h>

namespace brigade::lab {

std::string processor_name(const std::filesystem::path& root) {
  std::ifstream in(root / "proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "";
}

int64_t memory_bytes() { return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE); }

}  // namespace brigade::lab
