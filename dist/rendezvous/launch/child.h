// One rank as a process: its program, and its state.
#pragma once

#include <brigade/dist/rendezvous/launch/output.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace brigade::dist {

// The launcher's view of a rank.
struct Child : RankOutput {
  bool running = false;
  int status = 0;  // as returned by waitpid
  bool was_ended = false;
  std::chrono::steady_clock::time_point ended;
};

using Environment = std::vector<std::pair<std::string, std::string>>;

// The arguments of exec. All allocation happens before the fork, because the program has threads: after the fork there
// are only system calls.
class RankProgram {
 public:
  // `environment` overrides this process's variables. Makes the output pipes; `child` gets their read ends. Throws
  // DistError when that fails.
  RankProgram(Child& child, const std::vector<std::string>& command, const Environment& environment, bool reads_stdin);
  RankProgram(RankProgram&&) = default;

  // Called in the new process: becomes the rank. Returns errno, only on failure.
  int exec() noexcept;

 private:
  struct Pipe {
    int end = -1;
    explicit Pipe(int fd = -1) : end(fd) {}
    Pipe(Pipe&& other) noexcept : end(std::exchange(other.end, -1)) {}
    ~Pipe();
  };
  std::vector<std::string> words_, variables_;
  std::vector<char*> argv_, envp_;  // pointers into words_ and variables_
  bool reads_stdin_;
  Pipe out_, err_;  // write ends
};

}  // namespace brigade::dist
