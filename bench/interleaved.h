// Ways to take one step, timed in turns within one run, so that what else the machine does meets all of them alike.
#pragma once

#include <brigade/dist/process_group.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace brigade::bench {

struct Way {
  std::string name;
  std::shared_ptr<void> owns;  // model, wrapper, optimizer
  std::function<void()> step;
  std::vector<double> ms = {};
  uint64_t collectives = 0;  // over the timed steps
  double bytes = 0;          // in them, as the flight recorder has them
};

inline double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

// Every way's step `steps` times after `warmup` more; the order turns, so that no way always comes first. Collective.
inline void interleave(dist::ProcessGroup& group, std::vector<Way>& ways, int warmup, int steps) {
  using Clock = std::chrono::steady_clock;
  for (int step = -warmup; step < steps; ++step) {
    for (size_t k = 0; k < ways.size(); ++k) {
      Way& way = ways[(k + static_cast<size_t>(step + warmup)) % ways.size()];
      group.barrier();
      const uint64_t before = group.flight_recorder().entries().back().sequence;
      const auto begin = Clock::now();
      way.step();
      const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
      if (step < 0) continue;
      way.ms.push_back(ms);
      for (const dist::CollectiveInfo& info : group.flight_recorder().entries()) {
        if (info.sequence <= before) continue;
        ++way.collectives;
        if (!info.dtype.empty())
          way.bytes += static_cast<double>(info.count) * static_cast<double>(itemsize(dtype_from_name(info.dtype)));
      }
    }
  }
}

// Of the times of neighbouring steps of two ways.
struct Ratio {
  double median;
  double low, high;  // the middle half
  double of_minima;
};
inline Ratio ratio(const Way& a, const Way& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < a.ms.size(); ++i)
    ratios.push_back(a.ms[i] / b.ms[i]);
  return {quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75), quantile(a.ms, 0) / quantile(b.ms, 0)};
}

inline void print_ratio(const std::string& what, const Way& a, const Way& b) {
  const Ratio found = ratio(a, b);
  fmt::print("{:<24}: {:.3f}  (middle half {:.3f} - {:.3f}); of the minima {:.3f}\n", what, found.median, found.low,
             found.high, found.of_minima);
}

}  // namespace brigade::bench
