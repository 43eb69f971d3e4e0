// Posts the calls of a way, waits for them, and measures both; a computation of chosen length; an all_reduce without a
// group.
#include <brigade/lab/bench/collectives/call_way.h>

#include <brigade/core/error.h>
#include <brigade/dist/groups/arithmetic.h>
#include <brigade/dist/groups/shm/shared_group.h>
#include <brigade/lab/json.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

namespace brigade::lab::bench {

// --- A chain of multiplications, each of which depends on the previous one.

namespace {

// Keeps the compiler from removing the computation.
volatile double kept = 1;

}  // namespace

Computation::Computation() {
  constexpr int64_t kSteps = 200'000;
  double best = 1e30;
  for (int i = 0; i < 5; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run(kSteps);
    best = std::min(best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  steps_per_us_ = static_cast<double>(kSteps) / best;
}

int64_t Computation::steps_in(double us) const { return static_cast<int64_t>(us * steps_per_us_); }

void Computation::run(int64_t steps) const {
  double x = kept;
  for (int64_t i = 0; i < steps; ++i)
    x = x * 0.999 + 0.001;
  kept = x;
}

// --- Uses the process group's reduction loops, so that the difference in time is the rest of the group's work.

bool PlainLoops::fit(const dist::ProcessGroup& group) {
  return dynamic_cast<const dist::shm::SharedGroup*>(&group) != nullptr;
}

PlainLoops::PlainLoops(dist::ProcessGroup& group, const Tensor& data)
    : group_(dynamic_cast<dist::shm::SharedGroup*>(&group)), data_(data), reached_(data) {
  if (!group_) throw ValueError("plain loops need ranks that share memory, got a group of {}", group.backend());
  if (!group_->reaches(data)) reached_ = group_->allocate(data.numel(), data.dtype());
  const auto places = std::make_shared<std::vector<void*>>();
  group_->show(reached_, {}, places)->wait();
  places_ = *places;
}

void PlainLoops::run(dist::ReduceOp op) const {
  const bool copies = !reached_.is_same(data_);
  if (copies) std::memcpy(reached_.raw_data(), data_.raw_data(), data_.nbytes());
  group_->barrier();
  const auto [begin, end] = group_->share(data_.numel(), data_.dtype());
  dist::reduce_elements(places_, places_, data_.dtype(), op, begin, end);
  group_->barrier();
  if (copies) std::memcpy(data_.raw_data(), reached_.raw_data(), data_.nbytes());
}

// --- Posts the calls of a way, waits for them, and measures both.

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
