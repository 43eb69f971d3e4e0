// One rank as a child process of the launcher.
#pragma once

#include <brigade/dist/meeting/launch/guardian.h>
#include <brigade/dist/meeting/launch/output.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace brigade::dist {

struct Child : RankOutput {
  pid_t pid = -1;
  int process = -1;  // pidfd
  bool running = false;
  int status = 0;  // as waitpid says it
  bool told_to_end = false;
  std::chrono::steady_clock::time_point ended;
};

using Environment = std::vector<std::pair<std::string, std::string>>;

// Starts `command` as child.rank, in a process group of its own, with pipes for its output and
// `environment` over this process's. Throws IoError when the program cannot be started, DistError
// when there can be no process or no pipe.
void start(Child& child, const std::vector<std::string>& command, const Environment& environment, bool reads_stdin,
           const Guardian& guardian);

}  // namespace brigade::dist
