// Parsing `nvidia-smi topo -m`: the connection between GPUs, in words.
#include <brigade/lab/doctor/gpu_topology.h>

#include <doctest/doctest.h>

namespace brigade::test::gpu_topology_test {

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

}  // namespace brigade::test::gpu_topology_test
