// A job of ranks over a simulated transport: the code of reducers, wrappers and step checks is the real one, and the order of
// what the ranks do is drawn from a seed. So a fault that depends on an order comes again with its seed.
//
// The ranks are threads of which one runs at a time; it may hand on to another whenever it posts a collective, waits for
// one or looks whether it is complete. Time is a counter. There are no time-outs: when no rank can go on, that is seen.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace brigade::test::simulation {

class Simulation {
 public:
  Simulation(int ranks, uint64_t seed);
  // Runs `body` on every rank, once. By rank: the text of what it threw, "" where it ended well. A rank leaves when its body
  // ends.
  std::vector<std::string> run(const std::function<void(const dist::ProcessGroupPtr&)>& body);

  // Every rank waited for something that no other was going to do.
  bool is_deadlocked() const noexcept { return is_deadlocked_; }
  // Who was in what when ranks first met in different collectives; "" for never.
  const std::string& mismatch() const noexcept { return mismatch_; }
  // How often a rank was chosen to go on, and a hash of these choices: alike for equal runs.
  uint64_t choices() const noexcept { return choices_; }
  uint64_t hash() const noexcept { return hash_; }

 private:
  friend class SimulatedGroup;

  // A collective, as the ranks have posted it.
  struct Collective {
    explicit Collective(size_t ranks) : outputs(ranks), inputs(ranks), by_rank(ranks), has_come(ranks) {}
    std::vector<Tensor> outputs, inputs;
    std::vector<dist::CollectiveInfo> by_rank;
    std::vector<bool> has_come;
    size_t arrived = 0;
    bool is_done = false, is_mismatch = false;
  };
  struct Rank {
    bool has_ended = false;
    const Collective* waits_for = nullptr;
    size_t posted = 0;
    std::condition_variable turn;
  };

  bool is_hopeless(const Collective& collective) const;
  bool can_go_on(const Rank& rank) const;
  // Another rank, or this one, goes on; returns when it is this one's turn. Not for one that has ended, which leaves.
  void hand_on(std::unique_lock<std::mutex>& lock, int from);
  void yield(int rank);
  std::shared_ptr<Collective> post(int rank, dist::CollectiveKind kind, const Tensor& output, const Tensor& input,
                                   const dist::CollectiveOptions& options, const dist::CollectiveInfo& info);
  void wait(int rank, const Collective& collective);
  void run_rank(int rank, const std::function<void(const dist::ProcessGroupPtr&)>& body, std::string& end);

  static constexpr int kNobody = -1;

  std::mt19937_64 random_;
  std::mutex mutex_;
  std::vector<Rank> ranks_;
  std::deque<std::shared_ptr<Collective>> collectives_;
  int running_ = kNobody;
  int64_t clock_ = 0;
  bool is_deadlocked_ = false;
  std::string mismatch_;
  uint64_t choices_ = 0, hash_;
};

}  // namespace brigade::test::simulation
