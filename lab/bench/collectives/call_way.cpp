// Posts the calls of a way, waits for them, and measures both.
#include <brigade/lab/bench/collectives/call_way.h>

#include <brigade/lab/json_output.h>

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstring>

namespace brigade::lab::bench {

namespace {

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

// Repetitions that keep a size's share of a round short.
int usual_repetitions(int64_t bytes) {
  return bytes <= 64 << 10 ? 200 : bytes <= 1 << 20 ? 40 : bytes <= 16 << 20 ? 8 : bytes <= 64 << 20 ? 3 : 1;
}

void wait_for(std::vector<dist::WorkPtr>& works) {
  for (const dist::WorkPtr& work : works) {
    if (work) work->wait();
  }
  works.clear();
}

void fill_with_zeros(const Tensor& tensor) { std::memset(tensor.raw_data(), 0, tensor.nbytes()); }

}  // namespace

void CallWay::use_plain_loops() {
  for (const Buffers& buffers : calls)
    loops.emplace_back(*group, buffers.output);
}

void CallWay::post(std::vector<dist::WorkPtr>& works) const {
  for (const PlainLoops& each : loops)
    each.run(op);
  if (!loops.empty()) return;
  for (const Buffers& buffers : calls)
    works.push_back(collective->post(*group, buffers, {.op = op}));
}

void CallWay::run() const {
  std::vector<dist::WorkPtr> works;
  post(works);
  wait_for(works);
}

void CallWay::check() {
  if (!collective->has_data) return run();
  for (const Buffers& buffers : calls) {
    fill_with_zeros(buffers.output);
    collective->fill(buffers, group->rank(), group->size());
  }
  run();
  for (const Buffers& buffers : calls) {
    wrong += collective->wrong(buffers, op, group->rank(), group->size());
    fill_with_zeros(buffers.input);
    fill_with_zeros(buffers.output);
  }
}

int CallWay::count_of_samples() const { return repetitions > 0 ? repetitions : usual_repetitions(bytes); }

double CallWay::time() const {
  std::vector<double> us;
  std::vector<dist::WorkPtr> works;
  works.reserve(calls.size());
  group->barrier();
  for (int i = 0; i < count_of_samples(); ++i) {
    const auto begin = Clock::now();
    post(works);
    wait_for(works);
    us.push_back(microseconds_since(begin) / static_cast<double>(calls.size()));
  }
  return median(us);
}

double CallWay::overlap(const Computation& computation, int progress) {
  const double comm = time();
  const int64_t steps = computation.steps_in(comm * static_cast<double>(calls.size()));
  const auto compute = [&](bool calls_progress) {
    for (int part = 0; part <= progress; ++part) {
      computation.run(steps / (progress + 1));
      if (calls_progress && part < progress) group->progress();
    }
  };
  std::vector<double> alone, together;
  std::vector<dist::WorkPtr> works;
  for (int i = 0; i < count_of_samples(); ++i) {
    auto begin = Clock::now();
    compute(false);
    alone.push_back(microseconds_since(begin));
    group->barrier();
    begin = Clock::now();
    post(works);
    compute(true);
    wait_for(works);
    together.push_back(microseconds_since(begin));
  }
  comm_us.push_back(comm * static_cast<double>(calls.size()));
  compute_us.push_back(median(alone));
  return median(together);
}

nlohmann::json CallWay::key() const {
  nlohmann::json key{{"collective", collective->name},
                     {"backend", backend},
                     {"ranks", group->size()},
                     {"dtype", collective->has_data ? name(dtype) : "none"},
                     {"op", collective->reduces ? dist::name(op) : "none"},
                     {"bytes", bytes},
                     {"count", count},
                     {"in_place", collective->has_data && calls.front().in_place()},
                     {"memory", memory},
                     {"in_flight", calls.size()}};
  if (!loops.empty()) key["plain_loops"] = true;
  return key;
}

}  // namespace brigade::lab::bench
