// Judges the machine section by section: processor, devices, ranks of one host, network, backends.
#include <brigade/lab/doctor/machine.h>

#include <brigade/dist/errors/verdict.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace brigade::lab {
namespace {

using Findings = std::vector<Finding>;

std::string limit_in_words(uint64_t limit, bool of_bytes) {
  if (limit == std::numeric_limits<uint64_t>::max()) return "no limit";
  return of_bytes ? dist::bytes_in_words(static_cast<int64_t>(limit)) : fmt::format("{}", limit);
}

void judge_processor(const Machine& machine, Findings& found) {
  const auto add = [&](const char* name, std::string value, Health health = Health::Ok, std::string advice = "") {
    found.push_back({"processor", name, std::move(value), health, std::move(advice)});
  };
  add("model", machine.processor.empty() ? "unknown" : machine.processor);
  const bool limited = machine.quota > 0 && machine.quota < machine.usable;
  std::string count = fmt::format("{} of {}", machine.usable, machine.processors);
  if (limited) count += fmt::format(", time for {:g}", machine.quota);
  if (machine.numa_nodes > 1) count += fmt::format(", {} NUMA nodes", machine.numa_nodes);
  add("processors", count, limited ? Health::Note : Health::Ok,
      limited ? fmt::format("the control group stops threads beyond {:g} processors' time; set OMP_NUM_THREADS so that "
                            "all ranks together have no more",
                            machine.quota)
              : "");
  add("instruction set",
      machine.instruction_set_asked.empty()
          ? machine.instruction_set + ", the best that this processor has and Brigade knows"
          : fmt::format("{}, as BRIGADE_CPU={} asks", machine.instruction_set, machine.instruction_set_asked));
  add("threads of a rank",
      machine.omp_threads.empty()
          ? fmt::format("{}, shared by the ranks that brigade run starts (OMP_NUM_THREADS says otherwise)",
                        machine.usable)
          : fmt::format("{}, as OMP_NUM_THREADS asks", machine.omp_threads));
  const int own_turn = std::max(1, limited ? static_cast<int>(machine.quota) : machine.usable);
  const bool crowded = machine.local_ranks > own_turn;
  add("ranks",
      crowded ? fmt::format("{} here, with processors for {}", machine.local_ranks, own_turn)
              : fmt::format("up to {} with a processor each{}", own_turn,
                            machine.local_ranks > 0 ? fmt::format(", {} here", machine.local_ranks) : ""),
      crowded ? Health::Note : Health::Ok,
      crowded ? fmt::format("ranks that take turns on a processor wait for their turn in each collective; start {}, or "
                            "put the others on other hosts",
                            own_turn)
              : "");
  const bool busy = machine.threads_spin && machine.omp_threads != "1" && machine.load > own_turn;
  add("load", fmt::format("{:.1f} in the last minute", machine.load), busy ? Health::Note : Health::Ok,
      busy
          ? "other processes use the processors too: OpenMP threads that wait by spinning keep the processors from the "
            "threads they wait for, and a step may take several times as long; set OMP_WAIT_POLICY=passive, or "
            "OMP_NUM_THREADS=1"
          : "");
  add("memory", machine.memory_limit > 0
                    ? fmt::format("{}, of which the control group gives {}", dist::bytes_in_words(machine.memory),
                                  dist::bytes_in_words(machine.memory_limit))
                    : dist::bytes_in_words(machine.memory));
}

void judge_devices(const Machine& machine, Findings& found) {
  const auto add = [&](std::string name, std::string value, Health health = Health::Ok, std::string advice = "") {
    found.push_back({"devices", std::move(name), std::move(value), health, std::move(advice)});
  };
  for (const GpuOnBus& gpu : machine.gpus) {
    std::string value = "an NVIDIA GPU";
    if (!gpu.link.empty()) value += ", " + gpu.link;
    if (gpu.numa_node >= 0) value += fmt::format(", NUMA node {}", gpu.numa_node);
    add("bus " + gpu.address, value);
  }
  if (!machine.gpu_pairs.empty()) add("between GPUs", in_words(machine.gpu_pairs));
  const bool is_there = !machine.gpus.empty();
  if (is_there || !machine.driver.empty()) {
    add("driver", machine.driver.empty() ? "none is loaded" : "NVIDIA " + machine.driver,
        machine.driver.empty() ? Health::Note : Health::Ok,
        machine.driver.empty() ? "install NVIDIA's driver for this kernel to use the GPU" : "");
  }
  if (!machine.cuda.names.empty()) {
    add("cuda", fmt::format("{}", fmt::join(machine.cuda.names, ", ")));
  } else if (!machine.is_built_with_cuda) {
    add("cuda", machine.cuda.why_not, is_there ? Health::Note : Health::Ok,
        is_there ? "the GPU is not used: configure with `cmake --preset cuda` and build again" : "");
  } else {
    add("cuda", machine.cuda.why_not, is_there ? Health::Broken : Health::Ok,
        is_there
            ? "there is a GPU, and this build cannot use it: see that the driver is loaded and as new as this CUDA needs"
            : "");
  }
}

void judge_host(const Machine& machine, Findings& found) {
  const auto add = [&](const char* name, std::string value, Health health = Health::Ok, std::string advice = "") {
    found.push_back({"ranks of this host", name, std::move(value), health, std::move(advice)});
  };
  const bool shares = machine.shared_memory_fault.empty();
  add("shared memory", shares ? "works (anonymous files; /dev/shm is not used)" : machine.shared_memory_fault,
      shares ? Health::Ok : Health::Broken,
      shares ? ""
             : "the kernel has to allow memfd_create with seals: see what the container's profile (seccomp) forbids");
  const bool writes = machine.temporary_fault.empty();
  add("temporary folder",
      writes ? machine.temporary_folder : fmt::format("{}: {}", machine.temporary_folder, machine.temporary_fault),
      writes ? Health::Ok : Health::Broken, writes ? "" : "set TMPDIR to a folder that this user may write to");
  constexpr uint64_t kFiles = 256;  // sockets and memory of 64 ranks, and the program's own files
  const bool few = machine.open_files < kFiles;
  add("open files", limit_in_words(machine.open_files, false), few ? Health::Note : Health::Ok,
      few ? fmt::format("a rank opens a few for each peer; raise the limit with `ulimit -n {}`", 4 * kFiles) : "");
  add("locked memory", limit_in_words(machine.locked_memory, true));
}

bool has_interface(const Machine& machine, const std::string& name) {
  return std::any_of(machine.interfaces.begin(), machine.interfaces.end(),
                     [&](const NetworkInterface& each) { return each.name == name && each.is_up; });
}

void judge_network(const Machine& machine, Findings& found) {
  const auto add = [&](std::string name, std::string value, Health health = Health::Ok, std::string advice = "") {
    found.push_back({"network", std::move(name), std::move(value), health, std::move(advice)});
  };
  std::vector<std::string> names;
  bool loops = false;
  for (const NetworkInterface& each : machine.interfaces) {
    std::string value = each.is_up ? "up" : "down";
    if (each.megabits > 0) value += fmt::format(", {:g} Gbit/s", static_cast<double>(each.megabits) / 1000);
    if (!each.addresses.empty()) value += fmt::format(", {}", fmt::join(each.addresses, ", "));
    add(each.name, value);
    loops = loops || (each.is_loopback && each.is_up && !each.addresses.empty());
    if (each.is_up && !each.is_loopback) names.push_back(each.name);
  }
  if (!loops) {
    add("loopback", "none is up", Health::Broken,
        "the ranks of a host meet at 127.0.0.1: bring the loopback up (`ip link set lo up`)");
  }
  if (!machine.interface_asked.empty()) {
    const bool there = has_interface(machine, machine.interface_asked);
    add("between hosts",
        machine.interface_asked + (there ? ", as the environment asks" : ": there is no such interface that is up"),
        there ? Health::Ok : Health::Broken,
        there ? "" : fmt::format("set BRIGADE_SOCKET_IFNAME to one of: {}", fmt::join(names, ", ")));
  } else {
    add("between hosts", names.empty() ? "no interface but the loopback: ranks of other hosts cannot be reached"
                                       : "the interface on the way to the store (BRIGADE_SOCKET_IFNAME names another)");
  }
  const bool known = !machine.host_address.empty();
  add("host name",
      known ? fmt::format("{} is {}", machine.host, machine.host_address) : machine.host + " leads to no address",
      known ? Health::Ok : Health::Note,
      known ? "" : "give --master-addr (MASTER_ADDR) as an address, or enter the name in /etc/hosts");
}

std::string way_of_gpus(const Machine& machine, std::span<const dist::Backend> backends) {
  const size_t count = machine.cuda.names.size();
  if (count == 0) return "nothing: there is no GPU here";
  const auto nccl = std::ranges::find(backends, "nccl", &dist::Backend::name);
  if (nccl == backends.end() || !nccl->missing.empty()) return "nothing: this build has no CUDA";
  if (machine.nccl.empty()) return "by way of page-locked memory, since NCCL cannot be loaded (see above)";
  return fmt::format(
      "nccl for up to {} ranks here, each with a GPU of its own; by way of page-locked memory where ranks share one",
      count);
}

void judge_backends(const Machine& machine, std::span<const dist::Backend> backends, Findings& found) {
  bool hosts = false;
  for (const dist::Backend& each : backends) {
    const bool made = each.missing.empty();
    hosts = hosts || (made && each.name == "hosts");
    // A build without CUDA is missing nothing that it could use.
    const bool is_for_gpus = each.name == "nccl";
    found.push_back({"process groups", each.name, made ? each.reach : each.missing,
                     made || is_for_gpus ? Health::Ok : Health::Note,
                     made || is_for_gpus ? "" : "ranks of several hosts need Gloo"});
    if (!is_for_gpus || machine.cuda.names.empty()) continue;
    found.push_back({"process groups", "NCCL", machine.nccl.empty() ? machine.nccl_fault : "version " + machine.nccl,
                     machine.nccl.empty() ? Health::Note : Health::Ok,
                     machine.nccl.empty() ? "GPUs are reduced by way of the host's memory until then" : ""});
  }
  found.push_back({"process groups", "auto",
                   machine.shared_memory_fault.empty() ? fmt::format("shm where all ranks are on one host{}",
                                                                     hosts ? ", hosts where they are on several" : "")
                                                       : "nothing: shared memory does not work (see above)",
                   Health::Ok});
  found.push_back({"process groups", "auto, for GPUs", way_of_gpus(machine, backends), Health::Ok});
}

}  // namespace

const char* name(Health health) {
  switch (health) {
    case Health::Ok: return "ok";
    case Health::Note: return "note";
    default: return "broken";
  }
}

std::vector<Finding> findings_of(const Machine& machine, std::span<const dist::Backend> backends) {
  Findings found;
  judge_processor(machine, found);
  judge_devices(machine, found);
  judge_host(machine, found);
  judge_network(machine, found);
  judge_backends(machine, backends, found);
  return found;
}

std::string in_words(std::span<const Finding> findings) {
  std::string text, section;
  for (const Finding& each : findings) {
    if (each.section != section) text += "\n" + (section = each.section) + "\n";
    const char* const mark = each.health == Health::Broken ? "x" : each.health == Health::Note ? "!" : " ";
    text += fmt::format("{} {:<18} {}\n", mark, each.name, each.value);
    if (!each.advice.empty()) text += fmt::format("    {:<16} {}\n", "fix:", each.advice);
  }
  return text;
}

}  // namespace brigade::lab
