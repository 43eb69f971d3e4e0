// Blocks the signals of a job, and reads them from a signalfd.
#include <brigade/dist/rendezvous/launch/signals.h>

#include <brigade/core/error.h>

#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace brigade::dist {

JobSignals::JobSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    sigaddset(&signals, signal);
  fd_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd_ < 0) throw DistError("launch: cannot receive signals: {}", std::strerror(errno));
  pthread_sigmask(SIG_BLOCK, &signals, &previous_);
}

JobSignals::~JobSignals() {
  close(fd_);
  pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
}

int JobSignals::next() const noexcept {
  signalfd_siginfo info{};
  return read(fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info) ? static_cast<int>(info.ssi_signo) : 0;
}

int JobSignals::next(std::chrono::milliseconds wait) const noexcept {
  pollfd entry{fd_, POLLIN, 0};
  poll(&entry, 1, static_cast<int>(wait.count()));
  return next();
}

}  // namespace brigade::dist
