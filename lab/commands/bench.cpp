// brigade bench: executes the program `brigade-bench` in the same folder. Benchmarks are optimized like the code
// that they measure, which takes as long to compile as the libraries of dist, and `make demo` does not need them.
#include <brigade/core/error.h>
#include <brigade/lab/commands/commands.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

namespace brigade::lab {
namespace {

// Does not return on success: standard streams, process and signals stay.
int become_bench(const std::vector<std::string>& arguments) {
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::filesystem::path program = folder / "brigade-bench";
  // Help and results show the command as the user called it.
  std::vector<std::string> words{(folder / "brigade").string(), "bench"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  const int reason = errno;
  throw IoError("brigade bench: the benchmarks are a program of their own, {}, which cannot be started: {}{}",
                program.string(), std::strerror(reason),
                reason == ENOENT ? ". `make build` builds it (`make demo` does not)" : "");
}

}  // namespace

void add_bench(Command& app) {
  Command bench = app.add_command("bench", "Microbenchmarks: collectives, DDP's mechanisms, operations, optimizers");
  bench.action_with_all_words(become_bench);
}

}  // namespace brigade::lab
