// Asks the kernel for the exit status of a process that is not a child of this process.
#include <brigade/dist/groups/peer_process.h>

#include <fmt/format.h>

#include <cstdint>
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
