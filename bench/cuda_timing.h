// Times of work on a device, for the benches of CUDA: events around some calls, one pair per repeat.
#pragma once

#include <brigade/core/cuda/stream.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

namespace brigade::bench {

// [--json] [--smoke] [repeats], in any order.
struct Arguments {
  bool json = false;
  bool smoke = false;  // tiny sizes and one repeat, to see that it runs: the times mean nothing
  int repeats;

  Arguments(int argc, char** argv, int usual_repeats) : repeats(usual_repeats) {
    for (int i = 1; i < argc; ++i) {
      if (std::strcmp(argv[i], "--json") == 0) {
        json = true;
      } else if (std::strcmp(argv[i], "--smoke") == 0) {
        smoke = true;
      } else {
        repeats = std::max(1, std::atoi(argv[i]));
      }
    }
    if (smoke) repeats = 1;
  }
};

struct Timing {
  int repeats;
  int warm_up = 10;                   // repeats before those that count,
  double warm_up_ms = 0;              // and more of them until so much time has gone by
  int calls = 1;                      // between two events
  std::function<void()> before = {};  // each repeat, outside of the events
};

struct Times {
  double median, least;  // of one call, in microseconds
};

// On the current stream. Nothing waits for the device between the repeats.
inline Times device_times(const std::function<void()>& call, const Timing& timing) {
  using Clock = std::chrono::steady_clock;
  const cuda::Stream stream = cuda::current_stream();
  const auto repeat = [&] {
    if (timing.before) timing.before();
    std::pair<cuda::Event, cuda::Event> events{true, true};
    events.first.record(stream);
    for (int i = 0; i < timing.calls; ++i)
      call();
    events.second.record(stream);
    return events;
  };
  const auto begin = Clock::now();
  for (int i = 0; i < timing.warm_up ||
                  std::chrono::duration<double, std::milli>(Clock::now() - begin).count() < timing.warm_up_ms;
       ++i)
    repeat();
  std::vector<std::pair<cuda::Event, cuda::Event>> repeats;
  for (int i = 0; i < timing.repeats; ++i)
    repeats.push_back(repeat());
  stream.synchronize();
  std::vector<double> us;
  for (const auto& [start, end] : repeats)
    us.push_back(1e3 * static_cast<double>(end.elapsed_since(start)) / timing.calls);
  std::sort(us.begin(), us.end());
  return {us[us.size() / 2], us.front()};
}

}  // namespace brigade::bench
