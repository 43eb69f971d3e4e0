// Runs trainings on GPUs whose steps are replays of a captured graph, and compares them with eager trainings.
#pragma once

#include "on_gpus.h"

#include <brigade/core/cuda/graph.h>

#include <vector>

namespace brigade::test {

struct Steps {
  int count;
  int warm_up;     // eager steps before the capture
  int beside = 0;  // eager steps at the end, after the replays
};

// The state() of each rank's training after each step. `make(group, device)` returns a training with set_batch(step),
// step(), and state().
template <class Make>
auto states_of(int ranks, const Steps& steps, bool captured, const Make& make) {
  using State = decltype(make(dist::ProcessGroupPtr(), Device()).state());
  std::vector<std::vector<State>> all(static_cast<size_t>(ranks));
  on_gpus(ranks, [&](const dist::ProcessGroupPtr& group, Device device) {
    auto training = make(group, device);
    cuda::Graph graph;
    for (int i = 0; i < steps.count + steps.beside; ++i) {
      const bool replays = captured && i >= steps.warm_up && i < steps.count;
      if (replays && i == steps.warm_up) graph.capture([&] { training.step(); });
      training.set_batch(i);
      if (replays) {
        graph.replay();
      } else {
        training.step();
      }
      all[static_cast<size_t>(group->rank())].push_back(training.state());
    }
  });
  return all;
}

// Compares by rank and step.
template <class State>
void check_same_states(const std::vector<std::vector<State>>& found, const std::vector<std::vector<State>>& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    REQUIRE(found[rank].size() == expected[rank].size());
    for (size_t step = 0; step < expected[rank].size(); ++step) {
      CAPTURE(rank);
      CAPTURE(step);
      CHECK(found[rank][step] == expected[rank][step]);
    }
  }
}

}  // namespace brigade::test
