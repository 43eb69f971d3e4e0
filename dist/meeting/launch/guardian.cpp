// The guardian reads which groups there are from a socket, and kills them when the launcher's end
// is closed.
#include <brigade/dist/meeting/launch/guardian.h>

#include <brigade/core/error.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace brigade::dist {

namespace {

constexpr size_t kMostGroups = 1024;

// After the fork of a program with threads: system calls only. A negative number takes a group out.
[[noreturn]] void guard(int from, const char* folder) {
  // Not in the terminal's group, and deaf to what ends the launcher: that one says when it is over.
  setpgid(0, 0);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  // Nothing else may be held open by this process: no output, no port.
  dup2(from, STDIN_FILENO);
  if (syscall(SYS_close_range, 1U, ~0U, 0U) != 0) {
    for (int fd = 1; fd < 4096; ++fd)  // before Linux 5.9
      close(fd);
  }
  std::array<pid_t, kMostGroups> groups{};
  size_t count = 0;
  pid_t group = 0;
  while (true) {
    const ssize_t got = read(STDIN_FILENO, &group, sizeof group);
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(sizeof group)) break;
    const auto end = groups.begin() + static_cast<ptrdiff_t>(count);
    if (group > 0 && count < kMostGroups) groups[count++] = group;
    if (group < 0) count = static_cast<size_t>(std::remove(groups.begin(), end, -group) - groups.begin());
  }
  for (size_t i = 0; i < count; ++i)
    kill(-groups[i], SIGKILL);
  if (*folder != '\0') execl("/bin/rm", "rm", "-rf", "--", folder, nullptr);
  _exit(0);
}

}  // namespace

Guardian::Guardian(const std::string& folder) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw DistError("launch: cannot make a pair of sockets: {}", std::strerror(errno));
  process_ = fork();
  if (process_ == 0) guard(ends[0], folder.c_str());
  const int why = errno;
  close(ends[0]);
  socket_ = ends[1];
  if (process_ > 0) return;
  close(socket_);
  throw DistError("launch: cannot start a process: {}", std::strerror(why));
}

Guardian::~Guardian() {
  close(socket_);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Guardian::add_own_group() const noexcept {
  const pid_t own = getpid();
  [[maybe_unused]] const ssize_t sent = send(socket_, &own, sizeof own, MSG_NOSIGNAL);
}

void Guardian::remove(pid_t group) const noexcept {
  const pid_t gone = -group;
  [[maybe_unused]] const ssize_t sent = send(socket_, &gone, sizeof gone, MSG_NOSIGNAL);
}

}  // namespace brigade::dist
