// Forks a rank, which the guardian knows before it runs, and hears from it why it cannot run.
#include <brigade/dist/meeting/launch/child.h>

#include <brigade/core/error.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace brigade::dist {

namespace {

// "NAME=value" of this process, with what `environment` sets anew.
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

// As exec takes them: pointers into `words`, and a null at the end.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// In the child, before exec.
void read_nothing() {
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing <= STDIN_FILENO) return;
  dup2(nothing, STDIN_FILENO);
  close(nothing);
}

}  // namespace

void start(Child& child, const std::vector<std::string>& command, const Environment& environment, bool reads_stdin,
           const Guardian& guardian) {
  int out[2];
  int err[2];
  int failure[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0 || pipe2(failure, O_CLOEXEC) != 0) {
    throw DistError("cannot make pipes for rank {}: {}", child.rank, std::strerror(errno));
  }
  // Everything that allocates happens before fork: the child may only make system calls.
  std::vector<std::string> variables = merged_with_own(environment);
  std::vector<std::string> words = command;
  const std::vector<char*> envp = pointers_to(variables);
  const std::vector<char*> argv = pointers_to(words);
  const pid_t parent = getpid();

  const pid_t pid = fork();
  if (pid < 0) throw DistError("cannot start rank {}: {}", child.rank, std::strerror(errno));
  if (pid == 0) {
    setpgid(0, 0);
    guardian.add_own_group();
    // A rank must not outlive its launcher; the second line closes the gap before the first took
    // effect.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    std::signal(SIGPIPE, SIG_DFL);
    if (!reads_stdin) read_nothing();
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    execvpe(argv[0], argv.data(), envp.data());
    const int why = errno;
    [[maybe_unused]] const ssize_t written = write(failure[1], &why, sizeof why);
    _exit(127);
  }
  setpgid(pid, pid);
  close(out[1]);
  close(err[1]);
  close(failure[1]);
  child.pid = pid;
  child.running = true;
  child.process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  child.out = {out[0], STDOUT_FILENO, ""};
  child.err = {err[0], STDERR_FILENO, ""};
  fcntl(out[0], F_SETFL, O_NONBLOCK);
  fcntl(err[0], F_SETFL, O_NONBLOCK);
  int why = 0;
  const ssize_t got = read(failure[0], &why, sizeof why);
  close(failure[0]);
  if (got == sizeof why) {
    guardian.remove(pid);
    waitpid(pid, &child.status, 0);
    child.running = false;
    throw IoError("cannot start '{}': {}", command.front(), std::strerror(why));
  }
}

}  // namespace brigade::dist
