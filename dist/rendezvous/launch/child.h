// One rank as a process: what it is started with, and what becomes of it.
#pragma once

#include <brigade/dist/rendezvous/launch/output.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace brigade::dist {

// As the launcher sees it.
struct Child : RankOutput {
  bool running = false;
  int status = 0;  // as waitpid says it
  bool told_to_end = false;
  std::chrono::steady_clock::time_point ended;
};

using Environment = std::vector<std::pair<std::string, std::string>>;

// What exec needs. Everything that allocates is done before the fork of a program with threads:
// after it there are system calls only.
class RankProgram {
 public:
  // `environment` goes over this process's. Makes the pipes for the output of `child`, whose
  // reading ends it gets. Throws DistError when there can be none.
  RankProgram(Child& child, const std::vector<std::string>& command, const Environment& environment, bool reads_stdin);
  RankProgram(RankProgram&&) = default;

  // In a new process: becomes the rank. Returns only when that is impossible, with errno.
  int exec() noexcept;

 private:
  struct Pipe {
    int end = -1;
    explicit Pipe(int fd = -1) : end(fd) {}
    Pipe(Pipe&& other) noexcept : end(std::exchange(other.end, -1)) {}
    ~Pipe();
  };
  std::vector<std::string> words_, variables_;
  std::vector<char*> argv_, envp_;  // pointers into these
  bool reads_stdin_;
  Pipe out_, err_;  // writing ends
};

}  // namespace brigade::dist
