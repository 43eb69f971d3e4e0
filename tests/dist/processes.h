// Runs the same function on every rank, whichever the backend: threads of this process, or forked processes for shm,
// gloo and hosts.
//
//   const auto ranks = test::run_ranks("shm", 2, [](dist::ProcessGroupPtr group) { ...; return std::string("result");
//   }); CHECK(ranks[1].error == "");
//
// "hosts" runs processes too, the first half of which acts as if on another host than the rest; "hosts:AABA" gives the
// host of each rank.
//
// Everything that a rank throws is caught and reported by type and text. A run that takes minutes is ended, and its
// ranks are marked as hung, as are those that a signal has stopped when all others have ended. The time-out of the
// group begins when all ranks have arrived.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <atomic>
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
                            std::chrono::milliseconds timeout = std::chrono::seconds(60));

// A counter that ranks share, as threads or processes; made before run_ranks. A rank that has to be late waits for the
// other ranks' progress instead of sleeping for as long as they take on an idle machine.
class SharedCount {
 public:
  SharedCount();
  ~SharedCount();
  SharedCount(const SharedCount&) = delete;
  SharedCount& operator=(const SharedCount&) = delete;

  void add() const noexcept;
  bool reached(int count) const noexcept { return count_->load() >= count; }
  // Waits until `count` is reached; returns false after two minutes.
  bool wait_for(int count) const;
  // Adds at the end of a scope, also on an exception.
  struct AddAtEnd {
    const SharedCount& count;
    ~AddAtEnd() { count.add(); }
  };

 private:
  std::atomic<int>* count_;
};

// The backends of this build.
std::vector<std::string> backends();

// Layouts for "hosts:": even and uneven ones, ranks in turns, three hosts, all on one host, one host per rank.
std::vector<std::string> host_layouts();

}  // namespace brigade::test
