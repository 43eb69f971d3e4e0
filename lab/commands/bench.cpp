// brigade bench: becomes the program `brigade-bench` beside it. Benchmarks are optimised as what they measure, which
// takes a compiler as long as the libraries of dist do, and who begins with `make demo` does not need them.
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

// Does not return where it goes well: standard streams, process and signals stay.
int become_bench(const std::vector<std::string>& arguments) {
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::filesystem::path program = folder / "brigade-bench";
  // Help, and results with the command that made them, name what the user called.
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
