// SIMT_COVERAGE: the program runs itself as a child process and reads which kernels the child reports.
#include <doctest/doctest.h>
#include <link.h>
#include <simt/device.h>
#include <simt/launch.h>
#include <simt/runtime.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace {

template <int step>
__global__ void count_up(int* x) {
  x[threadIdx.x] += step;
}

uintptr_t load_bias() {
  uintptr_t bias = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* result) {
        *static_cast<uintptr_t*>(result) = info->dlpi_addr;
        return 1;  // the first is the program
      },
      &bias);
  return bias;
}

uintptr_t address_of(void (*kernel)(int*)) { return reinterpret_cast<uintptr_t>(kernel); }

}  // namespace

TEST_CASE("kernels for the record: two instantiations run, a third is only queued") {
  std::vector<int> x(64);
  const auto launch = [&](void (*kernel)(int*)) { simt::launch("count_up", kernel, 1, 64, 0, nullptr, x.data()); };
  launch(count_up<1>);
  launch(count_up<1>);
  launch(count_up<10>);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  launch(count_up<100>);
  simt::discard_queued();
  CHECK(x == std::vector<int>(64, 12));
}

TEST_CASE("a process leaves the addresses of the kernels that ran, as nm prints them, and how often") {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  std::string pattern = (std::filesystem::temp_directory_path() / "simt-coverage-XXXXXX").string();
  REQUIRE(mkdtemp(pattern.data()) != nullptr);
  const std::filesystem::path folder = std::filesystem::path(pattern) / "made by the process";
  const auto run = [&](const std::string& variable) {
    return std::system(
        (variable + " '" + program.string() + "' --test-case='kernels for the record*' >/dev/null").c_str());
  };
  REQUIRE(run("SIMT_COVERAGE='" + folder.string() + "'") == 0);
  REQUIRE(run("SIMT_COVERAGE='" + folder.string() + "'") == 0);
  int files = 0;
  std::map<uintptr_t, uint64_t> launches;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    ++files;
    std::ifstream in(entry.path());
    std::string file, address, count;
    while (std::getline(in, file, '\t') && std::getline(in, address, '\t') && std::getline(in, count)) {
      CHECK(file == program.string());
      launches[load_bias() + std::stoull(address, nullptr, 16)] += std::stoull(count);
    }
  }
  CHECK(files == 2);
  CHECK(launches == std::map<uintptr_t, uint64_t>{{address_of(count_up<1>), 4}, {address_of(count_up<10>), 2}});
  std::filesystem::remove_all(folder);

  REQUIRE(run("SIMT_COVERAGE=") == 0);  // same as unset
  CHECK(std::filesystem::is_empty(pattern));
  std::filesystem::remove_all(pattern);
}
