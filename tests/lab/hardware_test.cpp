// What the machine reports about its processors, memory nodes and GPUs, read from files and texts that stand for it.
#include <brigade/lab/doctor/machine.h>
#include <brigade/lab/hardware.h>

#include <doctest/doctest.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>

namespace brigade::test::hardware_test {

struct Root {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("brigade-hardware-" + std::to_string(getpid()));
  ~Root() { std::filesystem::remove_all(path); }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path / name).parent_path());
    std::ofstream(path / name) << text;
  }
};

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

TEST_CASE("pairs of GPUs are read from the table, beside network cards and affinities") {
  const auto pairs = lab::gpu_pairs_in(
      "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
      "GPU0\t X \tNV12\tSYS\tPXB\t0-31\t0\t\tN/A\n"
      "GPU1\tNV12\t X \tSYS\tSYS\t0-31\t0\t\tN/A\n"
      "GPU2\tSYS\tSYS\t X \tSYS\t32-63\t1\t\tN/A\n"
      "NIC0\tPXB\tSYS\tSYS\t X \t\t\t\t\n\n"
      "Legend:\n\n  X    = Self\n  NIC0: mlx5_0\n");
  REQUIRE(pairs.size() == 3);
  CHECK(lab::in_words(pairs) == "12 NVLinks (NV12): 0-1; between sockets (SYS): 0-2, 1-2");
}

TEST_CASE("one way between all, one GPU, and what is no table") {
  CHECK(lab::in_words(lab::gpu_pairs_in("     GPU0 GPU1\nGPU0  X   NV1\nGPU1 NV1   X\n")) == "1 NVLink (NV1): both");
  CHECK(lab::in_words(lab::gpu_pairs_in(" GPU0 GPU1 GPU2\nGPU0 X PIX PIX\nGPU1 PIX X PIX\nGPU2 PIX PIX X\n")) ==
        "within one PCIe switch (PIX): all pairs");
  CHECK(lab::gpu_pairs_in("\tGPU0\tCPU Affinity\nGPU0\t X \t0-15\n").empty());
  CHECK(lab::gpu_pairs_in("").empty());
  CHECK(lab::gpu_pairs_in("nvidia-smi has failed\x1b[").empty());
  CHECK(lab::gpu_pairs_in("GPU0 GPU1\nGPU0 X\n").empty());  // truncated
}

}  // namespace brigade::test::hardware_test
