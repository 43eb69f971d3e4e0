#include "program.h"

#include <chrono>
#include <cstdio>

#include <sys/wait.h>

namespace brigade::test {

Outcome run_program(const std::string& arguments, const std::string& environment, int deadline_s) {
  const std::string command =
      environment + " timeout -k 5 " + std::to_string(deadline_s) + " " + BRIGADE_PROGRAM + " " + arguments + " 2>&1";
  const auto begin = std::chrono::steady_clock::now();
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return {127, "popen failed", 0};
  char bytes[4096];
  size_t got = 0;
  while ((got = fread(bytes, 1, sizeof bytes, pipe)) > 0)
    outcome.output.append(bytes, got);
  const int status = pclose(pipe);
  outcome.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return outcome;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace brigade::test
