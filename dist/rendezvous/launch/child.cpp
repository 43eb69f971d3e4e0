// Prepares a rank's command, environment and pipes, and executes it.
#include <brigade/dist/rendezvous/launch/child.h>

#include <brigade/core/error.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace brigade::dist {

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

}  // namespace brigade::dist
