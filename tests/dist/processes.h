// Runs the same function on every rank, whichever the backend: threads of this process, or forked processes for shm,
// gloo and hosts.
//
//   const auto ranks = test::run_ranks("shm", 2, [](dist::ProcessGroupPtr group) { ...; return std::string("result");
//   }); CHECK(ranks[1].error == "");
//
// "hosts" are processes too, of which the first half takes itself for on another host than the rest; "hosts:AABA" says
// for each rank on which.
//
// Everything that a rank throws is caught and told by type and text. A run that takes longer than the deadline is
// ended, and its ranks are marked as hung.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace brigade::test {

struct Rank {
  std::string error;   // "", or the type: "ReductionError", "PeerError", "TimeoutError", "DistError", "exception"
  std::string text;    // of the error
  std::string result;  // what the function returned
  int signal = 0;      // that ended the process
  bool hung = false;
  double seconds = 0;  // until it ended
};

using Body = std::function<std::string(dist::ProcessGroupPtr)>;

std::vector<Rank> run_ranks(const std::string& backend, int ranks, const Body& body,
                            std::chrono::milliseconds timeout = std::chrono::seconds(20),
                            std::chrono::milliseconds deadline = std::chrono::seconds(60));

// The backends of this build.
std::vector<std::string> backends();

// For "hosts:": even and uneven ones, ranks dealt out in turns, three hosts, all on one, all alone.
std::vector<std::string> host_layouts();

}  // namespace brigade::test
