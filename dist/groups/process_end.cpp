// An exit handler that turns a premature exit(0) into status 1, and the exit status of a process that is not a child.
#include <brigade/dist/groups/process_end.h>

#include <brigade/autograd/detail/thread_state.h>

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <vector>

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace brigade::dist {

// --- An exit handler that turns a premature exit(0) into status 1.

namespace {

std::atomic<int> jobs_of_threads{0};

void look_at_exit(int status, void*) {
  if (status != 0) return;
  const bool of_threads = jobs_of_threads.load() > 0;
  if (!of_threads && !autograd::detail::backward_elsewhere()) return;
  std::fputs(of_threads
                 ? "brigade: exit(0) was called before the ranks of this process, which are threads, had ended; it "
                   "ends with status 1. Return from the function that run_threads calls instead\n"
                 : "brigade: exit(0) was called while a backward ran on another thread, which is lost; the process "
                   "ends with status 1. Let the training loop end first, or call exit with a status that says why\n",
             stderr);
  std::fflush(nullptr);
  _exit(1);
}

}  // namespace

void fail_early_exits() noexcept { [[maybe_unused]] static const int once = on_exit(look_at_exit, nullptr); }

RanksAreThreads::RanksAreThreads() noexcept {
  fail_early_exits();
  jobs_of_threads.fetch_add(1);
}

RanksAreThreads::~RanksAreThreads() { jobs_of_threads.fetch_sub(1); }

// --- Asks the kernel for the exit status of a process that is not a child of this process.

namespace {

// As in <linux/pidfd.h> of Linux 6.15, the first version that reports the exit code of processes that their parent has
// already reaped.
struct PidfdInfo {
  uint64_t mask = 0;
  uint64_t cgroup = 0;
  uint32_t ids[11] = {};
  int32_t exit_code = 0;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr uint64_t kWithExit = 1U << 3;

std::optional<int> status_by_pidfd(int pidfd) {
  PidfdInfo info{.mask = kWithExit};
  if (ioctl(pidfd, _IOWR(0xFF, 11, PidfdInfo), &info) != 0 || (info.mask & kWithExit) == 0) return std::nullopt;
  return info.exit_code;
}

// Before the parent has reaped the process, its exit status is the last field of /proc/PID/stat.
std::optional<int> status_of_zombie(int process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  std::getline(file, line);
  const size_t name_ends = line.rfind(')');
  if (name_ends == std::string::npos) return std::nullopt;
  std::istringstream rest(line.substr(name_ends + 1));
  const std::vector<std::string> fields{std::istream_iterator<std::string>(rest), {}};
  constexpr size_t kFields = 50;  // after the name, the second of 52
  if (fields.size() < kFields || fields.front() != "Z") return std::nullopt;
  return std::stoi(fields[kFields - 1]);
}

Departure end_by(int process, int status) {
  if (WIFSIGNALED(status)) {
    return {Departure::How::Died, fmt::format("process {} was ended by signal {}, {}", process, WTERMSIG(status),
                                              strsignal(WTERMSIG(status)))};
  }
  if (WEXITSTATUS(status) == 0)
    return {Departure::How::Left, fmt::format("its process ({}) ended with status 0", process)};
  return {Departure::How::Died, fmt::format("process {} ended with status {}", process, WEXITSTATUS(status))};
}

}  // namespace

PeerProcess::PeerProcess(int process) noexcept
    : process_(process), watched_(static_cast<int>(syscall(SYS_pidfd_open, process, 0))) {}

Departure PeerProcess::end() const {
  if (!watched_) return {};
  // Readable once the process has ended, even while it has not been reaped.
  pollfd entry{watched_.fd(), POLLIN, 0};
  if (poll(&entry, 1, 0) <= 0) return {};
  std::optional<int> status = status_of_zombie(process_);
  if (!status) status = status_by_pidfd(watched_.fd());
  if (status) return end_by(process_, *status);
  return {Departure::How::Died, fmt::format("process {} has ended", process_)};
}

}  // namespace brigade::dist
