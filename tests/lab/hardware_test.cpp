// What the kernel reports about processors and memory nodes, read from a folder that stands in for /.
#include <brigade/lab/hardware.h>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace brigade::test::hardware_test {

namespace {

struct Root {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("brigade-hardware-" + std::to_string(getpid()));
  ~Root() { std::filesystem::remove_all(path); }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path / name).parent_path());
    std::ofstream(path / name) << text;
  }
};

}  // namespace

TEST_CASE("processor, memory nodes and governors as the kernel's files say") {
  const Root root;
  CHECK(lab::processor_name(root.path) == "");
  CHECK(lab::numa_nodes(root.path) == 1);
  CHECK(lab::frequency_governor(root.path) == "");
  root.write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Processor One\n");
  for (const std::string node : {"node0", "node1", "node10"})
    root.write("sys/devices/system/node/" + node + "/cpulist", "0\n");
  root.write("sys/devices/system/node/possible", "0-1\n");
  root.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  root.write("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n");
  root.write("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "performance\n");
  root.write("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "other\n");
  CHECK(lab::processor_name(root.path) == "Processor One");
  CHECK(lab::numa_nodes(root.path) == 3);
  CHECK(lab::frequency_governor(root.path) == "performance, powersave");
}

TEST_CASE("this machine has vectors of a known width and a load") {
  const int bits = lab::vector_bits();
  CHECK((bits == 0 || bits == 128 || bits == 256 || bits == 512));
  CHECK(lab::load_average() >= 0);
  CHECK(lab::numa_nodes() >= 1);
}

}  // namespace brigade::test::hardware_test
