// Runs an action that is expected to end the process in a child process.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>

namespace brigade::test {

struct ChildOutcome {
  int status = 0;      // as from waitpid; 0: the action ended, and the process with it
  std::string output;  // its stderr
};

inline ChildOutcome in_child(const std::function<void()>& body) {
  int ends[2];
  if (pipe(ends) != 0) return {-1, "no pipe"};
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    // Otherwise the test framework's handlers would report a crash of this test.
    for (const int number : {SIGSEGV, SIGBUS, SIGABRT})
      std::signal(number, SIG_DFL);
    close(ends[0]);
    alarm(120);
    body();
    _exit(0);
  }
  close(ends[1]);
  ChildOutcome outcome;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;)
    outcome.output.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  waitpid(child, &outcome.status, 0);
  return outcome;
}

}  // namespace brigade::test
