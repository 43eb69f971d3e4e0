// Reads the kernel's files about processors and memory nodes, and queries the number of pages.
#include <brigade/lab/hardware.h>

#include <brigade/kernels/kernel.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

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

namespace {

// The entries of `folder` whose names are `prefix` and a number, such as "cpu0", "cpu1", ...
std::vector<std::filesystem::path> numbered(const std::filesystem::path& folder, const std::string& prefix) {
  std::vector<std::filesystem::path> found;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder, missing)) {
    const std::string name = entry.path().filename();
    if (name.size() > prefix.size() && name.starts_with(prefix) &&
        std::all_of(name.begin() + static_cast<std::ptrdiff_t>(prefix.size()), name.end(),
                    [](unsigned char c) { return std::isdigit(c); }))
      found.push_back(entry.path());
  }
  return found;
}

}  // namespace

int numa_nodes(const std::filesystem::path& root) {
  return std::max<int>(1, static_cast<int>(numbered(root / "sys/devices/system/node", "node").size()));
}

std::string frequency_governor(const std::filesystem::path& root) {
  std::set<std::string> names;
  for (const std::filesystem::path& cpu : numbered(root / "sys/devices/system/cpu", "cpu")) {
    std::ifstream in(cpu / "cpufreq/scaling_governor");
    if (std::string name; in >> name) names.insert(name);
  }
  std::string all;
  for (const std::string& name : names)
    all += (all.empty() ? "" : ", ") + name;
  return all;
}

double load_average() {
  double load = -1;
  return getloadavg(&load, 1) == 1 ? load : -1;
}

int vector_bits() {
  const std::string_view set = kernels::instruction_set();
  if (set == "portable") return 0;
  return set == "x86-64-v4" ? 512 : set == "x86-64-v3" ? 256 : 128;
}

}  // namespace brigade::lab
