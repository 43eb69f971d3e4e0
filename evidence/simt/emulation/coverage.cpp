// If SIMT_COVERAGE names a folder, each process that ran kernels writes a file there at exit, with one line per kernel:
// the program or library that contains the kernel, the kernel's address in it as nm prints it, and its number of
// launches.
#include "coverage.h"

#include <link.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>

namespace simt::detail {
namespace {

struct Runs {
  std::mutex mutex;
  std::map<const void*, uint64_t> launches;
};
Runs& runs() {
  static auto* const all = new Runs;  // never destroyed: kernels may run until exit
  return *all;
}

// The loaded file that contains an address, and the address as linked.
struct Place {
  uintptr_t address;
  std::string file;
  uintptr_t linked;
};

Place place_of(const void* kernel) {
  Place place{reinterpret_cast<uintptr_t>(kernel), "", 0};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* result) {
        Place& wanted = *static_cast<Place*>(result);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = info->dlpi_phdr[i];
          const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
          if (segment.p_type != PT_LOAD || wanted.address < begin || wanted.address >= begin + segment.p_memsz)
            continue;
          wanted.file = info->dlpi_name;
          wanted.linked = wanted.address - info->dlpi_addr;
          return 1;
        }
        return 0;
      },
      &place);
  if (place.file.empty()) place.file = std::filesystem::read_symlink("/proc/self/exe").string();
  return place;
}

void write_runs() {
  const std::filesystem::path folder = std::getenv("SIMT_COVERAGE");
  // Process ids may be reused.
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const std::filesystem::path file = folder / (std::to_string(getpid()) + "-" + std::to_string(now) + ".txt");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::ofstream out(file);
  Runs& all = runs();
  const std::lock_guard held(all.mutex);
  for (const auto& [kernel, launches] : all.launches) {
    const Place place = place_of(kernel);
    out << place.file << '\t' << std::hex << place.linked << '\t' << std::dec << launches << '\n';
  }
  out.close();
  if (!out) std::fprintf(stderr, "simt: cannot write %s (SIMT_COVERAGE)\n", file.c_str());
}

}  // namespace

void note_run(const void* kernel) {
  static const bool records = [] {
    const char* folder = std::getenv("SIMT_COVERAGE");
    return folder != nullptr && *folder != 0 && std::atexit(&write_runs) == 0;
  }();
  if (!records) return;
  Runs& all = runs();
  const std::lock_guard held(all.mutex);
  ++all.launches[kernel];
}

}  // namespace simt::detail
