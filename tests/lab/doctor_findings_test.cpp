// The doctor's findings for simulated machines: without a driver, in a small container, with a wrong interface.
#include <brigade/lab/doctor/machine.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

#include <unistd.h>

namespace brigade::test::doctor_findings_test {

using lab::Finding;
using lab::Health;

lab::Machine sound_machine() {
  lab::Machine machine;
  machine.processor = "Made-up 9000";
  machine.processors = machine.usable = 8;
  machine.instruction_set = "x86-64-v3";
  machine.memory = int64_t{64} << 30;
  machine.cuda.why_not = "this program was built without cuda (CMake: --preset cuda)";
  machine.temporary_folder = "/tmp";
  machine.open_files = 1024;
  machine.locked_memory = std::numeric_limits<uint64_t>::max();
  machine.host = "node1";
  machine.host_address = "10.0.0.1";
  machine.interfaces = {
      {.name = "lo", .addresses = {"127.0.0.1"}, .is_up = true, .is_loopback = true},
      {.name = "eth0", .addresses = {"10.0.0.1"}, .is_up = true, .is_loopback = false, .megabits = 25000},
      {.name = "eth1", .addresses = {}, .is_up = false, .is_loopback = false}};
  return machine;
}

std::vector<dist::Backend> backends(const std::string& without_gloo = "") {
  std::vector<dist::Backend> all(2);
  all[0].name = "shm";
  all[0].reach = "processes of one host";
  all[1].name = "hosts";
  all[1].reach = "shm inside each host, gloo between them";
  all[1].missing = without_gloo;
  return all;
}

Finding finding(const lab::Machine& machine, const std::string& name,
                const std::vector<dist::Backend>& with = backends()) {
  for (const Finding& each : lab::findings_of(machine, with)) {
    if (each.name == name) return each;
  }
  return {};
}

// The names of the findings with this health.
std::vector<std::string> not_well(const lab::Machine& machine, Health health) {
  std::vector<std::string> names;
  for (const Finding& each : lab::findings_of(machine, backends())) {
    CHECK((each.health == Health::Ok) == each.advice.empty());
    if (each.health == health) names.push_back(each.name);
  }
  return names;
}

using Names = std::vector<std::string>;

TEST_CASE("of a sound machine the doctor says what will be used, and advises nothing") {
  const lab::Machine machine = sound_machine();
  CHECK(not_well(machine, Health::Note) == Names{});
  CHECK(not_well(machine, Health::Broken) == Names{});
  CHECK(finding(machine, "processors").value == "8 of 8");
  CHECK(finding(machine, "threads of a rank").value.starts_with("8, shared by the ranks"));
  CHECK(finding(machine, "eth0").value == "up, 25 Gbit/s, 10.0.0.1");
  CHECK(finding(machine, "eth1").value == "down");
  CHECK(finding(machine, "locked memory").value == "no limit");
  CHECK(finding(machine, "auto").value == "shm where all ranks are on one host, hosts where they are on several");
  const std::string text = lab::in_words(lab::findings_of(machine, backends()));
  CHECK(text.find("\nprocessor\n  model              Made-up 9000\n") != std::string::npos);
}

TEST_CASE("a container's share of the processors and of the memory is reported") {
  lab::Machine machine = sound_machine();
  machine.usable = 4;
  machine.quota = 1.5;
  machine.memory_limit = int64_t{2} << 30;
  machine.numa_nodes = 2;
  machine.omp_threads = "4";
  machine.instruction_set_asked = "x86-64-v3";
  CHECK(not_well(machine, Health::Note) == Names{"processors"});
  CHECK(finding(machine, "processors").value == "4 of 8, time for 1.5, 2 NUMA nodes");
  CHECK(finding(machine, "processors").advice.find("1.5 processors' time") != std::string::npos);
  CHECK(finding(machine, "memory").value.find("the control group gives 2") != std::string::npos);
  CHECK(finding(machine, "threads of a rank").value == "4, as OMP_NUM_THREADS asks");
  machine.load = 9.5;
  CHECK(finding(machine, "load").value == "9.5 in the last minute");
  CHECK(finding(machine, "load").health == Health::Ok);  // threads that wait do not spin
  machine.threads_spin = true;
  CHECK(finding(machine, "load").health == Health::Note);
  CHECK(finding(machine, "load").advice.find("set OMP_WAIT_POLICY=passive") != std::string::npos);
  machine.load = 0.5;
  CHECK(finding(machine, "load").health == Health::Ok);
  CHECK(finding(machine, "instruction set").value == "x86-64-v3, as BRIGADE_CPU=x86-64-v3 asks");
}

TEST_CASE("ranks that outnumber the processors are reported") {
  lab::Machine machine = sound_machine();
  CHECK(finding(machine, "ranks").value == "up to 8 with a processor each");
  machine.local_ranks = 8;
  CHECK(finding(machine, "ranks").value == "up to 8 with a processor each, 8 here");
  CHECK(not_well(machine, Health::Note) == Names{});
  machine.local_ranks = 9;
  CHECK(finding(machine, "ranks").value == "9 here, with processors for 8");
  CHECK(finding(machine, "ranks").advice.find("start 8") != std::string::npos);
  CHECK(not_well(machine, Health::Note) == Names{"ranks"});
}

TEST_CASE("a GPU that is not used is reported with the reason: build, driver, or both") {
  lab::Machine machine = sound_machine();
  machine.gpus = {{.address = "0000:01:00.0", .link = "16.0 GT/s PCIe x16", .numa_node = 1}};
  CHECK(not_well(machine, Health::Note) == Names{"driver", "cuda"});
  CHECK(finding(machine, "bus 0000:01:00.0").value == "an NVIDIA GPU, 16.0 GT/s PCIe x16, NUMA node 1");
  CHECK(finding(machine, "cuda").advice.find("cmake --preset cuda") != std::string::npos);
  // Built with CUDA but without a driver: what was requested does not work.
  machine.is_built_with_cuda = true;
  machine.cuda.why_not = "no CUDA driver is installed";
  CHECK(not_well(machine, Health::Broken) == Names{"cuda"});
  machine.driver = "550.54";
  machine.cuda = {.names = {"NVIDIA H100"}, .why_not = ""};
  CHECK(not_well(machine, Health::Broken) == Names{});
  CHECK(not_well(machine, Health::Note) == Names{});
  CHECK(finding(machine, "cuda").value == "NVIDIA H100");
  CHECK(finding(machine, "driver").value == "NVIDIA 550.54");
  // Built with CUDA on a machine without a GPU: nothing is wrong.
  machine = sound_machine();
  machine.is_built_with_cuda = true;
  machine.cuda.why_not = "there is no CUDA device";
  CHECK(not_well(machine, Health::Broken) == Names{});
}

TEST_CASE("what ranks cannot do without is broken, and says how it is mended") {
  lab::Machine machine = sound_machine();
  machine.shared_memory_fault = "cannot make 65536 bytes of shared memory: Function not implemented";
  machine.temporary_fault = "Permission denied";
  machine.interfaces.erase(machine.interfaces.begin());
  machine.interface_asked = "eth1";  // an interface that is down
  machine.host_address.clear();
  machine.open_files = 64;
  CHECK(not_well(machine, Health::Broken) == Names{"shared memory", "temporary folder", "loopback", "between hosts"});
  CHECK(not_well(machine, Health::Note) == Names{"open files", "host name"});
  CHECK(finding(machine, "between hosts").advice == "set BRIGADE_SOCKET_IFNAME to one of: eth0");
  CHECK(finding(machine, "temporary folder").value == "/tmp: Permission denied");
  CHECK(finding(machine, "auto").value.starts_with("nothing"));
  const std::string text = lab::in_words(lab::findings_of(machine, backends()));
  CHECK(text.find("\nx temporary folder   /tmp: Permission denied\n    fix:             set TMPDIR") !=
        std::string::npos);
  CHECK(text.find("\n! host name          node1 leads to no address\n") != std::string::npos);
}

TEST_CASE("NCCL's version is reported where there is a GPU, and what is missing where it cannot be loaded") {
  std::vector<dist::Backend> all = backends();
  all.push_back({.name = "nccl", .reach = "processes of any hosts with a GPU each", .make = {}});
  lab::Machine machine = sound_machine();
  machine.cuda.names.clear();
  CHECK(finding(machine, "NCCL", all).name.empty());
  CHECK(finding(machine, "auto, for GPUs", all).value == "nothing: there is no GPU here");
  machine.cuda.names = {"NVIDIA H100"};
  machine.nccl = "2.28.9";
  CHECK(finding(machine, "NCCL", all).value == "version 2.28.9");
  CHECK(finding(machine, "NCCL", all).health == Health::Ok);
  CHECK(finding(machine, "auto, for GPUs", all).value ==
        "nccl for up to 1 ranks here, each with a GPU of its own; by way of page-locked memory where ranks share one");
  machine.nccl.clear();
  machine.nccl_fault = "NCCL cannot be loaded: no such file";
  CHECK(finding(machine, "NCCL", all).value == "NCCL cannot be loaded: no such file");
  CHECK(finding(machine, "NCCL", all).health == Health::Note);
  CHECK(finding(machine, "auto, for GPUs", all).value ==
        "by way of page-locked memory, since NCCL cannot be loaded (see above)");
  // A build without CUDA could not use NCCL in any case.
  all.back().missing = "this build of Brigade has no CUDA";
  CHECK(finding(machine, "nccl", all).value == "this build of Brigade has no CUDA");
  CHECK(finding(machine, "auto, for GPUs", all).value == "nothing: this build has no CUDA");
  CHECK(finding(machine, "nccl", all).health == Health::Ok);
}

TEST_CASE("a build without Gloo says so where it matters") {
  const Finding missing = finding(sound_machine(), "hosts", backends("this build of Brigade has no Gloo"));
  CHECK(missing.health == Health::Note);
  CHECK(missing.value == "this build of Brigade has no Gloo");
  CHECK(finding(sound_machine(), "auto", backends("no Gloo")).value == "shm where all ranks are on one host");
}

TEST_CASE("the kernel's files are read: GPUs on the bus, the driver, control groups of both versions") {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / ("brigade-doctor-" + std::to_string(getpid()));
  fs::remove_all(root);
  const auto write = [&](const std::string& file, const std::string& text) {
    fs::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text;
  };
  write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Made-up 9000\n");
  write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/memory.max", "1048576\n");
  write("sys/module/nvidia/version", "550.54\n");
  const std::string gpu = "sys/bus/pci/devices/0000:01:00.0/";
  write(gpu + "vendor", "0x10de\n");
  write(gpu + "class", "0x030200\n");
  write(gpu + "numa_node", "-1\n");
  write(gpu + "current_link_speed", "16.0 GT/s PCIe\n");
  write(gpu + "current_link_width", "16\n");
  write("sys/bus/pci/devices/0000:01:00.1/vendor", "0x10de\n");
  write("sys/bus/pci/devices/0000:01:00.1/class", "0x040300\n");  // the audio function of the card
  for (const char* node : {"node0", "node1", "node12", "possible"})
    write(std::string("sys/devices/system/node/") + node + "/x", "");
  lab::Machine machine = lab::read_machine(root);
  CHECK(machine.processor == "Made-up 9000");
  CHECK(machine.quota == 1.5);
  CHECK(machine.memory_limit == 1048576);
  CHECK(machine.driver == "550.54");
  REQUIRE(machine.gpus.size() == 1);
  CHECK(machine.gpus[0].address == "0000:01:00.0");
  CHECK(machine.gpus[0].link == "16.0 GT/s PCIe x16");
  CHECK(machine.gpus[0].numa_node == -1);
  CHECK(machine.numa_nodes == 3);

  fs::remove_all(root / "sys/fs/cgroup");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");  // cgroup v1 for "no limit"
  machine = lab::read_machine(root);
  CHECK(machine.quota == 0);
  CHECK(machine.memory_limit == 0);
  fs::remove_all(root);

  // The machine that runs the test.
  machine = lab::read_machine();
  CHECK(machine.usable >= 1);
  CHECK(machine.processors >= 1);
  CHECK(machine.memory > 0);
  CHECK(machine.shared_memory_fault == "");
  CHECK(machine.temporary_fault == "");
  CHECK(std::any_of(machine.interfaces.begin(), machine.interfaces.end(),
                    [](const auto& each) { return each.is_loopback; }));
}

}  // namespace brigade::test::doctor_findings_test
