// Executes a rank's command, finds the children of this process in /proc, and reads signals from a signalfd.
#include <brigade/dist/rendezvous/launch/child.h>

#include <brigade/core/error.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace brigade::dist {

// --- Prepares a rank's command, environment and pipes, and executes it.

namespace {

// "NAME=value" of this process, overridden by `environment`.
std::vector<std::string> merged_with_own(const Environment& environment) {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    if (std::none_of(environment.begin(), environment.end(), [&](const auto& pair) { return pair.first == name; }))
      variables.push_back(text);
  }
  for (const auto& [name, value] : environment)
    variables.push_back(name + "=" + value);
  return variables;
}

// The form that exec takes: pointers into `words`, terminated by a null.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

void read_nothing() {
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing <= STDIN_FILENO) return;
  dup2(nothing, STDIN_FILENO);
  close(nothing);
}

}  // namespace

RankProgram::Pipe::~Pipe() {
  if (end >= 0) close(end);
}

RankProgram::RankProgram(Child& child, const std::vector<std::string>& command, const Environment& environment,
                         bool reads_stdin)
    : words_(command),
      variables_(merged_with_own(environment)),
      argv_(pointers_to(words_)),
      envp_(pointers_to(variables_)),
      reads_stdin_(reads_stdin) {
  const auto connect = [&](Stream& stream, int target, Pipe& writer) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      throw DistError("cannot make pipes for rank {}: {}", child.rank, std::strerror(errno));
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    stream = {ends[0], target, ""};
    writer.end = ends[1];
  };
  connect(child.out, STDOUT_FILENO, out_);
  connect(child.err, STDERR_FILENO, err_);
}

int RankProgram::exec() noexcept {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  if (!reads_stdin_) read_nothing();
  dup2(out_.end, STDOUT_FILENO);
  dup2(err_.end, STDERR_FILENO);
  execvpe(argv_[0], argv_.data(), envp_.data());
  return errno;
}

// --- Reads the parent of every process in /proc.

namespace {

// Writes "NUMBER/stat".
void stat_path(const char* number, char (&path)[64]) noexcept {
  size_t length = 0;
  for (; number[length] && length < 40; ++length)
    path[length] = number[length];
  std::memcpy(path + length, "/stat", sizeof "/stat");
}

// "17 (a name) S 4 ...": the name, which may hold parentheses, the state, the parent.
void visit_if_own(int proc, const char* number, pid_t own, void (*visit)(void*, const OwnChild&),
                  void* context) noexcept {
  char path[64];
  stat_path(number, path);
  const int file = openat(proc, path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  char text[512];
  const ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  if (got <= 0) return;
  text[got] = '\0';
  char* name = std::strchr(text, '(');
  char* end = std::strrchr(text, ')');
  if (!name || !end || end[1] == '\0' || end[2] == 'Z' || end[2] == 'X') return;
  if (std::strtol(end + 3, nullptr, 10) != own) return;
  *end = '\0';
  visit(context, {static_cast<pid_t>(std::strtol(number, nullptr, 10)), name + 1});
}

}  // namespace

void visit_own_children(void (*visit)(void*, const OwnChild&), void* context) noexcept {
  const int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return;
  const pid_t own = getpid();
  alignas(dirent64) char entries[4096];
  for (ssize_t got = 0; (got = getdents64(proc, entries, sizeof entries)) > 0;) {
    for (ssize_t at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') visit_if_own(proc, entry->d_name, own, visit, context);
      at += entry->d_reclen;
    }
  }
  close(proc);
}

// --- Blocks the signals of a job, and reads them from a signalfd.

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
