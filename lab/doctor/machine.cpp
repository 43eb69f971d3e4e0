// Reads the kernel's files for hardware and control groups, and calls it for limits and networks.
#include <brigade/lab/doctor/machine.h>

#include <brigade/core/device_runtime.h>
#include <brigade/core/error.h>
#include <brigade/dist/groups/nccl/library.h>
#include <brigade/dist/groups/shm/shared_file.h>
#include <brigade/dist/rendezvous/launch/environment.h>
#include <brigade/kernels/kernel.h>
#include <brigade/lab/hardware.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <system_error>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

namespace brigade::lab {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

// The first line without its newline; "" for a file that cannot be read.
std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

int64_t number_in(const std::string& text, int64_t otherwise) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end != text.data() ? value : otherwise;
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator each(folder, error), end; !error && each != end; each.increment(error))
    found.push_back(each->path());
  std::sort(found.begin(), found.end());
  return found;
}

void read_processor(const fs::path& root, Machine& machine) {
  machine.processor = processor_name(root);
  machine.processors = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t set;
  machine.usable = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : machine.processors;
  int nodes = 0;
  for (const fs::path& each : entries(root / "sys/devices/system/node")) {
    const std::string name = each.filename();
    nodes += name.starts_with("node") && name.size() > 4 && name[4] >= '0' && name[4] <= '9';
  }
  machine.numa_nodes = std::max(1, nodes);
  machine.instruction_set = kernels::instruction_set();
  machine.instruction_set_asked = environment("BRIGADE_CPU");
  machine.omp_threads = environment("OMP_NUM_THREADS");
  machine.threads_spin = environment("OMP_WAIT_POLICY").empty() && environment("GOMP_SPINCOUNT").empty();
  machine.load = std::max(0.0, load_average());
  machine.memory = memory_bytes();
  try {
    const auto launched = dist::find_launched_rank(dist::launch_variables());
    if (launched) machine.local_ranks = std::max(0, launched->local_world_size);
  } catch (const DistError&) {
    // Incomplete variables are reported where they are needed.
  }
}

// Reads the limits of the control group (version 2, or their equivalents in version 1).
void read_limits_of_group(const fs::path& root, Machine& machine) {
  const fs::path groups = root / "sys/fs/cgroup";
  std::istringstream two(first_line(groups / "cpu.max"));
  std::string quota = "max", period;
  two >> quota >> period;
  if (period.empty()) {
    quota = first_line(groups / "cpu/cpu.cfs_quota_us");
    period = first_line(groups / "cpu/cpu.cfs_period_us");
  }
  const int64_t of = number_in(period, 0);
  if (const int64_t time = number_in(quota, -1); time > 0 && of > 0)
    machine.quota = static_cast<double>(time) / static_cast<double>(of);
  int64_t limit = number_in(first_line(groups / "memory.max"), 0);
  if (limit == 0) limit = number_in(first_line(groups / "memory/memory.limit_in_bytes"), 0);
  if (limit > 0 && limit < machine.memory) machine.memory_limit = limit;
}

void read_devices(const fs::path& root, Machine& machine) {
  for (int i = 0; i < device_count(kCUDA); ++i)
    machine.cuda.names.push_back(device_runtime({kCUDA, i}).name(i));
  machine.cuda.why_not = why_no_device(kCUDA);
  if (!machine.cuda.names.empty()) {
    try {
      machine.nccl = dist::nccl::version_in_words(dist::nccl::library().version);
    } catch (const DistError& error) {
      machine.nccl_fault = error.what();
    }
  }
  machine.is_built_with_cuda = is_built_with(kCUDA);
  machine.driver = first_line(root / "sys/module/nvidia/version");
  for (const fs::path& each : entries(root / "sys/bus/pci/devices")) {
    // NVIDIA's display and 3D controllers.
    if (first_line(each / "vendor") != "0x10de" || !first_line(each / "class").starts_with("0x03")) continue;
    GpuOnBus gpu{.address = each.filename(), .link = "", .numa_node = -1};
    const std::string speed = first_line(each / "current_link_speed");
    const std::string width = first_line(each / "current_link_width");
    if (!speed.empty() && !width.empty()) gpu.link = speed + " x" + width;
    gpu.numa_node = static_cast<int>(number_in(first_line(each / "numa_node"), -1));
    machine.gpus.push_back(std::move(gpu));
  }
  if (machine.gpus.size() > 1) machine.gpu_pairs = read_gpu_pairs();
}

uint64_t limit_of(decltype(RLIMIT_NOFILE) what) {
  rlimit limit{};
  if (getrlimit(what, &limit) != 0) return 0;
  return limit.rlim_cur == RLIM_INFINITY ? std::numeric_limits<uint64_t>::max() : limit.rlim_cur;
}

void try_shared_memory(Machine& machine) {
  try {
    constexpr uint64_t kBytes = 1 << 16;
    const dist::shm::SharedFile file(kBytes);
    const dist::shm::Mapping first(file, 0, kBytes), second(file, 0, kBytes);
    auto* const written = static_cast<volatile char*>(first.data());
    written[kBytes - 1] = 42;
    if (static_cast<volatile char*>(second.data())[kBytes - 1] != 42)
      machine.shared_memory_fault = "what one mapping writes, another does not see";
  } catch (const Error& error) {
    machine.shared_memory_fault = error.what();
  }
}

void try_temporary_folder(Machine& machine) {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  machine.temporary_folder = folder.string();
  if (error) {
    machine.temporary_folder = environment("TMPDIR");
    machine.temporary_fault = error.message();
    return;
  }
  std::string name = (folder / "brigade-doctor-XXXXXX").string();
  const int fd = mkstemp(name.data());
  if (fd < 0) {
    machine.temporary_fault = std::strerror(errno);
    return;
  }
  if (write(fd, "x", 1) != 1) machine.temporary_fault = std::strerror(errno);
  close(fd);
  unlink(name.c_str());
}

std::string address_in_words(const sockaddr& address) {
  const socklen_t size = address.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::array<char, NI_MAXHOST> text{};
  return getnameinfo(&address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0 ? text.data() : "";
}

void read_networks(const fs::path& root, Machine& machine) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return;
  for (const ifaddrs* each = all; each; each = each->ifa_next) {
    auto known = std::find_if(machine.interfaces.begin(), machine.interfaces.end(),
                              [&](const NetworkInterface& one) { return one.name == each->ifa_name; });
    if (known == machine.interfaces.end()) {
      NetworkInterface found;
      found.name = each->ifa_name;
      found.is_up = (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_RUNNING) != 0;
      found.is_loopback = (each->ifa_flags & IFF_LOOPBACK) != 0;
      found.megabits = number_in(first_line(root / "sys/class/net" / found.name / "speed"), -1);
      known = machine.interfaces.insert(machine.interfaces.end(), std::move(found));
    }
    if (!each->ifa_addr || (each->ifa_addr->sa_family != AF_INET && each->ifa_addr->sa_family != AF_INET6)) continue;
    if (std::string text = address_in_words(*each->ifa_addr); !text.empty())
      known->addresses.push_back(std::move(text));
  }
  freeifaddrs(all);
  machine.interface_asked = environment("BRIGADE_SOCKET_IFNAME");
  if (machine.interface_asked.empty()) machine.interface_asked = environment("GLOO_SOCKET_IFNAME");
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return;
  machine.host = name.data();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(machine.host.c_str(), nullptr, &hints, &found) != 0) return;
  if (found) machine.host_address = address_in_words(*found->ai_addr);
  freeaddrinfo(found);
}

}  // namespace

Machine read_machine(const fs::path& root) {
  Machine machine;
  read_processor(root, machine);
  read_limits_of_group(root, machine);
  read_devices(root, machine);
  try_shared_memory(machine);
  try_temporary_folder(machine);
  machine.open_files = limit_of(RLIMIT_NOFILE);
  machine.locked_memory = limit_of(RLIMIT_MEMLOCK);
  read_networks(root, machine);
  return machine;
}

}  // namespace brigade::lab
