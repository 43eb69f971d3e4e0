#include "processes.h"

#include <brigade/dist/errors/verdict.h>
#include <brigade/dist/groups/backends.h>
#include <brigade/dist/rendezvous/rendezvous.h>
#include <brigade/dist/rendezvous/store.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace brigade::test {
namespace {

using Clock = std::chrono::steady_clock;

// A longer run counts as a hang. Tests set time-outs of their own; this limit leaves room for a busy machine.
constexpr std::chrono::seconds kLongestRun{240};

Rank run_one(const Body& body, const std::function<dist::ProcessGroupPtr()>& make_group) {
  Rank rank;
  const auto failed = [&](const char* kind, const std::exception& error) {
    rank.error = kind;
    rank.text = error.what();
  };
  try {
    rank.result = body(make_group());
  } catch (const dist::ReductionError& error) {
    failed("ReductionError", error);
  } catch (const TimeoutError& error) {
    failed("TimeoutError", error);
  } catch (const PeerError& error) {
    failed("PeerError", error);
  } catch (const DistError& error) {
    failed("DistError", error);
  } catch (const std::exception& error) {
    failed("exception", error);
  }
  return rank;
}

std::vector<Rank> run_threads(int count, const Body& body, std::chrono::milliseconds timeout) {
  std::vector<Rank> ranks(static_cast<size_t>(count));
  std::vector<dist::ProcessGroupPtr> groups = dist::make_thread_groups(count, timeout);
  std::vector<std::thread> threads;
  const auto begin = Clock::now();
  for (int r = 0; r < count; ++r) {
    threads.emplace_back([&, r, group = std::move(groups[static_cast<size_t>(r)])]() mutable {
      ranks[static_cast<size_t>(r)] = run_one(body, [&] { return std::move(group); });
      group.reset();
      ranks[static_cast<size_t>(r)].seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  return ranks;
}

// "hosts:AAB" puts ranks 0 and 1 on one host and rank 2 on another; "hosts" the first half and the rest.
std::string host_of(const std::string& backend, int rank, int count) {
  const size_t colon = backend.find(':');
  if (colon != std::string::npos) return std::string(1, backend.at(colon + 1 + static_cast<size_t>(rank)));
  return rank < (count + 1) / 2 ? "A" : "B";
}

dist::ProcessGroupPtr make_group(const std::string& backend, const std::string& store_folder, int rank, int count,
                                 std::chrono::milliseconds timeout) {
  const dist::Backend& made = dist::find_backend(backend.substr(0, backend.find(':')));
  const std::shared_ptr<dist::Store> store = dist::open_file_store(store_folder, count);
  // As in init_process_group, all ranks have arrived before the waits begin that may be short.
  dist::exchange_hosts(*store, rank, count, std::chrono::minutes(2), "meeting");
  return made.make(store, rank, count, timeout, "group");
}

// Whether a signal has stopped the process, which does not go on by itself.
bool is_stopped(pid_t pid) {
  siginfo_t change{};
  return waitid(P_PID, static_cast<id_t>(pid), &change, WSTOPPED | WNOHANG | WNOWAIT) == 0 && change.si_pid == pid;
}

struct Process {
  pid_t pid = -1;
  int pipe = -1;
  std::string text;
};

std::vector<Rank> run_processes(const std::string& backend, int count, const Body& body,
                                std::chrono::milliseconds timeout) {
  std::string folder = (std::filesystem::temp_directory_path() / "brigade-test-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  std::vector<Process> processes(static_cast<size_t>(count));
  for (int r = 0; r < count; ++r) {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    const pid_t pid = fork();
    if (pid == 0) {
#ifdef _OPENMP
      omp_set_num_threads(1);  // the parent's pool does not exist here
#endif
      if (backend.starts_with("hosts")) setenv("BRIGADE_HOST_ID", host_of(backend, r, count).c_str(), 1);
      const Rank rank = run_one(body, [&] { return make_group(backend, folder + "/store", r, count, timeout); });
      const std::string text = rank.error + '\0' + rank.text + '\0' + rank.result + '\0';
      for (size_t done = 0; done < text.size();) {
        const ssize_t written = write(ends[1], text.data() + done, text.size() - done);
        if (written <= 0) break;
        done += static_cast<size_t>(written);
      }
      _exit(0);
    }
    close(ends[1]);
    processes[static_cast<size_t>(r)] = {pid, ends[0], ""};
  }

  std::vector<Rank> ranks(static_cast<size_t>(count));
  const auto begin = Clock::now();
  int open = count;
  while (open > 0) {
    std::vector<pollfd> entries;
    for (const Process& process : processes)
      entries.push_back({process.pipe, POLLIN, 0});
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(begin + kLongestRun - Clock::now()).count();
    const bool some_run = std::ranges::any_of(
        processes, [](const Process& process) { return process.pipe >= 0 && !is_stopped(process.pid); });
    if (left <= 0 || !some_run) break;
    poll(entries.data(), entries.size(), static_cast<int>(std::min<int64_t>(left, 200)));
    for (size_t r = 0; r < processes.size(); ++r) {
      if (!entries[r].revents) continue;
      char bytes[4096];
      const ssize_t got = read(processes[r].pipe, bytes, sizeof bytes);
      if (got > 0) {
        processes[r].text.append(bytes, static_cast<size_t>(got));
        continue;
      }
      close(processes[r].pipe);
      processes[r].pipe = -1;
      ranks[r].seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      --open;
    }
  }
  for (size_t r = 0; r < processes.size(); ++r) {
    if (processes[r].pipe >= 0) {
      ranks[r].hung = true;
      kill(processes[r].pid, SIGKILL);
      close(processes[r].pipe);
    }
    int status = 0;
    waitpid(processes[r].pid, &status, 0);
    if (WIFSIGNALED(status)) ranks[r].signal = WTERMSIG(status);
    const std::string& text = processes[r].text;
    const size_t first = text.find('\0');
    const size_t second = first == std::string::npos ? first : text.find('\0', first + 1);
    if (second == std::string::npos) continue;
    ranks[r].error = text.substr(0, first);
    ranks[r].text = text.substr(first + 1, second - first - 1);
    ranks[r].result = text.substr(second + 1, text.size() - second - 2);
  }
  std::filesystem::remove_all(folder);
  return ranks;
}

// The host's half of the nccl group, which needs no device.
const dist::AddBackend nccl_on_host({"nccl-on-host", "processes of one host, for these tests",
                                     [](std::shared_ptr<dist::Store> store, int rank, int size,
                                        std::chrono::milliseconds timeout, const std::string& prefix) {
                                       return dist::make_nccl_group(
                                           dist::make_shm_group(std::move(store), rank, size, timeout, prefix));
                                     }});

std::vector<std::string> backends_of_this_build() {
  std::vector<std::string> names{"threads"};
  for (const dist::Backend& each : dist::all_backends()) {
    if (each.missing.empty()) names.push_back(each.name);
  }
  return names;
}
// Before a test adds one.
const std::vector<std::string> kBackends = backends_of_this_build();

}  // namespace

std::vector<Rank> run_ranks(const std::string& backend, int ranks, const Body& body,
                            std::chrono::milliseconds timeout) {
  return backend == "threads" ? run_threads(ranks, body, timeout) : run_processes(backend, ranks, body, timeout);
}

SharedCount::SharedCount() {
  void* const memory =
      mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  count_ = new (memory) std::atomic<int>(0);
}
SharedCount::~SharedCount() { munmap(count_, sizeof(std::atomic<int>)); }

void SharedCount::add() const noexcept { count_->fetch_add(1); }

bool SharedCount::wait_for(int count) const {
  const auto latest = Clock::now() + std::chrono::minutes(2);
  while (count_->load() < count) {
    if (Clock::now() > latest) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

std::vector<std::string> backends() { return kBackends; }

std::vector<std::string> host_layouts() {
  return {"AA", "AB", "AAB", "ABB", "AABB", "AAAB", "ABBB", "ABAB", "ABCA", "AABBCC"};
}

}  // namespace brigade::test
