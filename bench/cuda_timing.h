// Timing for the CUDA benchmarks: a pair of events around the calls of each repeat.
#pragma once

#include "number_in.h"

#include <brigade/core/cuda/stream.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace brigade::bench {

// [--json] [--smoke] [REPEATS], in any order; --help exits with status 0, any other argument with status 2.
struct Arguments {
  bool json = false;
  bool smoke = false;  // tiny sizes and one repeat, to check that it runs; the times are meaningless
  int repeats;

  Arguments(int argc, char** argv, int usual_repeats) : repeats(usual_repeats) {
    for (int i = 1; i < argc; ++i) {
      const std::string_view word = argv[i];
      if (word == "--json") {
        json = true;
      } else if (word == "--smoke") {
        smoke = true;
      } else if (word == "--help" || word == "-h") {
        usage(stdout, argv[0], usual_repeats);
        std::exit(0);
      } else {
        repeats = number_in(word);
        if (repeats > 0) continue;
        std::fprintf(stderr, "%s: unknown argument '%s'\n", argv[0], argv[i]);
        usage(stderr, argv[0], usual_repeats);
        std::exit(2);
      }
    }
    if (smoke) repeats = 1;
  }

 private:
  static void usage(std::FILE* out, const char* program, int usual_repeats) {
    std::fprintf(out,
                 "usage: %s [--json] [--smoke] [REPEATS]\n"
                 "  --json    one line of JSON per case\n"
                 "  --smoke   tiny sizes and one repeat, to see that it runs: the times mean nothing\n"
                 "  REPEATS   timed repeats of each case, above 0 (%d)\n"
                 "Example:\n  %s --json 20\n",
                 program, usual_repeats, program);
  }
};

struct Timing {
  int repeats;
  int warm_up = 10;                   // untimed repeats at least,
  double warm_up_ms = 0;              // and more until this time has passed
  int calls = 1;                      // calls between two events
  std::function<void()> before = {};  // runs before each repeat, outside the events
};

struct Times {
  double median, least;  // of one call, in microseconds
};

// Times `call` on the current stream, without synchronization between the repeats.
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
