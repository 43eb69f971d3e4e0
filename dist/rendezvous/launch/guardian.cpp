// The launcher's end of its socket to the guardian.
#include <brigade/dist/rendezvous/launch/guardian.h>

#include <brigade/core/error.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace brigade::dist {

Guardian::Guardian(const std::string& folder, std::vector<RankProgram> programs) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw DistError("launch: cannot make a pair of sockets: {}", std::strerror(errno));
  std::vector<pid_t> ranks(programs.size());
  const GuardianTask task{ends[0], ends[1], getpid(), folder.c_str(), programs, ranks};
  keeper_ = fork();
  if (keeper_ == 0) keep_guardian(task);
  const int why = errno;
  close(ends[0]);
  socket_ = ends[1];
  if (keeper_ > 0) return;
  close(socket_);
  throw DistError("launch: cannot start a process: {}", std::strerror(why));
}

Guardian::~Guardian() {
  close(socket_);
  while (waitpid(keeper_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<GuardianNews> Guardian::news() const noexcept {
  GuardianNews news;
  const ssize_t got = ::recv(socket_, &news, sizeof news, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (got != static_cast<ssize_t>(sizeof news)) return GuardianNews{};
  return news;
}

void Guardian::signal(int rank, int signal) const noexcept {
  const GuardianOrder order{.signal = signal, .rank = rank};
  [[maybe_unused]] const ssize_t sent = ::send(socket_, &order, sizeof order, MSG_NOSIGNAL);
}

void Guardian::end_what_is_left(std::chrono::milliseconds grace) const noexcept {
  const GuardianOrder order{.grace_ms = grace.count()};
  [[maybe_unused]] const ssize_t sent = ::send(socket_, &order, sizeof order, MSG_NOSIGNAL);
}

std::string make_guarded_folder(const std::string& name) {
  std::error_code failed;
  const std::string chosen = std::filesystem::temp_directory_path(failed).string();
  int why = failed ? failed.value() : 0;
  for (const std::string& place : {failed ? "" : chosen, std::string("/tmp"), std::string("/var/tmp"),
                                   std::string("/dev/shm"), std::string(".")}) {
    if (place.empty()) continue;
    std::string folder = (std::filesystem::absolute(place, failed) / (name + "-XXXXXX")).string();
    if (!failed && mkdtemp(folder.data())) return folder;
    if (why == 0) why = errno;
  }
  errno = why;
  return "";
}

}  // namespace brigade::dist
