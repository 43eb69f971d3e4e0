#include "program.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

namespace brigade::test {
namespace {

Outcome run_to_the_end(const std::string& program, const std::string& arguments, const std::string& environment,
                       int deadline_s, const std::string& redirection) {
  const std::string command =
      environment + " timeout -k 5 " + std::to_string(deadline_s) + " " + program + " " + arguments + " " + redirection;
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

}  // namespace

Outcome run_program(const std::string& arguments, const std::string& environment, int deadline_s) {
  return run_to_the_end(BRIGADE_PROGRAM, arguments, environment, deadline_s, "2>&1");
}

Streams run_program_apart(const std::string& arguments, const std::string& environment, int deadline_s) {
  const auto file = std::filesystem::temp_directory_path() / ("brigade-errors-" + std::to_string(getpid()));
  const Outcome outcome = run_to_the_end(BRIGADE_PROGRAM, arguments, environment, deadline_s, "2>" + file.string());
  std::ostringstream errors;
  errors << std::ifstream(file).rdbuf();
  std::filesystem::remove(file);
  return {outcome.status, outcome.output, errors.str()};
}

Outcome run_copied_program(const std::string& folder, const std::string& arguments) {
  const std::filesystem::path copy = std::filesystem::path(folder) / "brigade";
  std::filesystem::copy_file(BRIGADE_PROGRAM, copy, std::filesystem::copy_options::overwrite_existing);
  return run_to_the_end(copy.string(), arguments, "", 240, "2>&1");
}

Outcome run_program_until(const std::string& arguments, const std::function<bool()>& is_time, int deadline_s) {
  const std::string command = std::string("exec ") + BRIGADE_PROGRAM + " " + arguments + " >/dev/null 2>&1";
  const auto begin = std::chrono::steady_clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (is_time() || passed() > deadline_s) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), "", passed()};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace brigade::test
