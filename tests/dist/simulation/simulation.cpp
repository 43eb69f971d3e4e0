// The scheduler of the simulated ranks, and the group that they hold.
#include "simulation.h"

#include <brigade/core/clock.h>
#include <brigade/core/factory.h>
#include <brigade/core/fnv.h>
#include <brigade/dist/groups/arithmetic.h>
#include <brigade/dist/groups/collective_errors.h>

#include <fmt/format.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <cstring>
#include <thread>

namespace brigade::test::simulation {

using dist::CollectiveInfo;
using dist::CollectiveKind;
using dist::CollectiveOptions;
using dist::WorkPtr;

// All ranks have come, with the same.
void perform(CollectiveKind kind, std::span<const Tensor> outputs, std::span<const Tensor> inputs,
             const CollectiveOptions& options) {
  std::vector<void*> to, from;
  for (const Tensor& output : outputs)
    to.push_back(output.raw_data());
  for (const Tensor& input : inputs)
    from.push_back(input.raw_data());
  const auto copy = [](void* destination, const void* source, size_t bytes) {
    if (bytes > 0 && destination != source) std::memcpy(destination, source, bytes);
  };
  const size_t bytes = inputs.front().nbytes();
  switch (kind) {
    case CollectiveKind::AllReduce:
      return dist::reduce_elements(from, to, outputs.front().dtype(), options.op, 0, outputs.front().numel());
    case CollectiveKind::Broadcast:
      for (void* const each : to)
        copy(each, from[static_cast<size_t>(options.root)], bytes);
      return;
    case CollectiveKind::AllGather:
      for (void* const each : to) {
        for (size_t r = 0; r < from.size(); ++r)
          copy(static_cast<char*>(each) + r * bytes, from[r], bytes);
      }
      return;
    default: throw DistError("the simulated transport has no such collective");
  }
}

class SimulatedGroup final : public dist::ProcessGroup {
 public:
  SimulatedGroup(Simulation& simulation, int rank)
      : ProcessGroup(rank, static_cast<int>(simulation.ranks_.size()), std::chrono::seconds(30)),
        simulation_(simulation) {}
  ~SimulatedGroup() override {
    forget_staged();
    end_channels();
  }
  const char* backend() const noexcept override { return "simulated"; }
  using ProcessGroup::allocate;
  Tensor allocate(int64_t numel, DType dtype) override { return empty({numel}, {dtype}); }
  // Peers see that this rank has left when it ends.
  void abort(std::string_view) override {}

 protected:
  void do_progress() override { simulation_.yield(rank()); }
  WorkPtr do_all_reduce(const Tensor& tensor, const CollectiveOptions& options) override {
    return post(CollectiveKind::AllReduce, tensor, tensor, options);
  }
  WorkPtr do_broadcast(const Tensor& tensor, const CollectiveOptions& options) override {
    return post(CollectiveKind::Broadcast, tensor, tensor, options);
  }
  WorkPtr do_all_gather(const Tensor& output, const Tensor& input, const CollectiveOptions& options) override {
    return post(CollectiveKind::AllGather, output, input, options);
  }
  WorkPtr do_reduce_scatter(const Tensor& output, const Tensor& input, const CollectiveOptions& options) override {
    return post(CollectiveKind::ReduceScatter, output, input, options);
  }
  WorkPtr do_barrier(const CollectiveOptions& options) override {
    const Tensor nothing = empty({0}, {kFloat32});
    return post(CollectiveKind::Barrier, nothing, nothing, options);
  }

 private:
  struct SimulatedWork final : dist::Work {
    SimulatedWork(Simulation& whole, int of_rank, std::shared_ptr<Simulation::Collective> posted)
        : simulation(whole), rank(of_rank), collective(std::move(posted)) {}
    // It may be complete elsewhere, and this rank not know it yet.
    bool is_completed() override {
      simulation.yield(rank);
      return collective->is_done && simulation.random_() % 2 == 0;
    }
    void wait() override { simulation.wait(rank, *collective); }
    void wait(std::chrono::milliseconds) override { wait(); }

    Simulation& simulation;
    int rank;
    std::shared_ptr<Simulation::Collective> collective;
  };

  WorkPtr post(CollectiveKind kind, const Tensor& output, const Tensor& input, const CollectiveOptions& options) {
    const CollectiveInfo info = record(kind, input, options);
    return std::make_shared<SimulatedWork>(simulation_, rank(),
                                           simulation_.post(rank(), kind, output, input, options, info));
  }

  Simulation& simulation_;
};

Simulation::Simulation(int ranks, uint64_t seed)
    : random_(seed), ranks_(static_cast<size_t>(ranks)), hash_(fnv("simulation")) {}

// Whether a rank that has not come to it never will.
bool Simulation::is_hopeless(const Collective& collective) const {
  for (size_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r].has_ended && !collective.has_come[r]) return true;
  }
  return false;
}

bool Simulation::can_go_on(const Rank& rank) const {
  if (rank.has_ended) return false;
  const Collective* const collective = rank.waits_for;
  return !collective || collective->is_done || collective->is_mismatch || is_deadlocked_ || is_hopeless(*collective);
}

void Simulation::hand_on(std::unique_lock<std::mutex>& lock, int from) {
  std::vector<int> able, living;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    if (can_go_on(ranks_[r])) able.push_back(static_cast<int>(r));
    if (!ranks_[r].has_ended) living.push_back(static_cast<int>(r));
  }
  if (living.empty()) return;
  if (able.empty()) {
    is_deadlocked_ = true;  // their waits throw
    able = living;
  }
  running_ = able[random_() % able.size()];
  hash_ = fnv_step(hash_, static_cast<uint64_t>(running_));
  ++choices_;
  clock_ += 1000 + static_cast<int64_t>(random_() % 100000);
  if (running_ == from) return;
  ranks_[static_cast<size_t>(running_)].turn.notify_one();
  Rank& own = ranks_[static_cast<size_t>(from)];
  if (!own.has_ended) own.turn.wait(lock, [&] { return running_ == from; });
}

void Simulation::yield(int rank) {
  std::unique_lock lock(mutex_);
  hand_on(lock, rank);
}

std::shared_ptr<Simulation::Collective> Simulation::post(int rank, CollectiveKind kind, const Tensor& output,
                                                         const Tensor& input, const CollectiveOptions& options,
                                                         const CollectiveInfo& info) {
  yield(rank);
  const auto own = static_cast<size_t>(rank);
  const size_t position = ranks_[own].posted++;
  while (collectives_.size() <= position)
    collectives_.push_back(std::make_shared<Collective>(ranks_.size()));
  const std::shared_ptr<Collective> collective = collectives_[position];
  collective->outputs[own] = output;
  collective->inputs[own] = input;
  collective->by_rank[own] = info;
  collective->has_come[own] = true;
  if (++collective->arrived < ranks_.size()) return collective;
  const std::vector<CollectiveInfo>& infos = collective->by_rank;
  collective->is_mismatch =
      !std::ranges::all_of(infos, [&](const CollectiveInfo& each) { return each.matches(infos.front()); });
  if (collective->is_mismatch) {
    for (size_t r = 0; r < infos.size() && mismatch_.size() < 2000; ++r) {
      if (r == 0 || !infos[r].matches(infos[r - 1])) mismatch_ += fmt::format("rank {}: {}; ", r, in_words(infos[r]));
    }
  } else if (output.numel() > 0) {
    perform(kind, collective->outputs, collective->inputs, options);
  }
  collective->is_done = !collective->is_mismatch;
  collective->outputs.clear();
  collective->inputs.clear();
  return collective;
}

void Simulation::wait(int rank, const Collective& collective) {
  Rank& own = ranks_[static_cast<size_t>(rank)];
  std::unique_lock lock(mutex_);
  own.waits_for = &collective;
  hand_on(lock, rank);
  own.waits_for = nullptr;
  if (collective.is_done) return;
  if (collective.is_mismatch) {
    std::vector<dist::RankStatus> places;
    for (size_t r = 0; r < ranks_.size(); ++r)
      places.push_back({.rank = {static_cast<int>(r)}, .last = collective.by_rank[r], .finished = false});
    throw dist::mismatch_error(places, dist::FlightRecorder(), {});
  }
  throw DistError("simulated: {}", is_deadlocked_ ? "no rank can go on" : "a rank has left");
}

void Simulation::run_rank(int rank, const std::function<void(const dist::ProcessGroupPtr&)>& body, std::string& end) {
#ifdef _OPENMP
  omp_set_num_threads(1);
#endif
  {
    std::unique_lock lock(mutex_);
    ranks_[static_cast<size_t>(rank)].turn.wait(lock, [&] { return running_ == rank; });
  }
  try {
    const SimulatedClock clock(clock_);
    body(std::make_shared<SimulatedGroup>(*this, rank));
  } catch (const std::exception& error) {
    end = error.what();
  }
  std::unique_lock lock(mutex_);
  ranks_[static_cast<size_t>(rank)].has_ended = true;
  hand_on(lock, rank);
}

std::vector<std::string> Simulation::run(const std::function<void(const dist::ProcessGroupPtr&)>& body) {
  std::vector<std::string> ends(ranks_.size());
  std::vector<std::thread> threads;
  for (size_t r = 0; r < ranks_.size(); ++r)
    threads.emplace_back([&, r] { run_rank(static_cast<int>(r), body, ends[r]); });
  {
    const std::lock_guard lock(mutex_);
    running_ = static_cast<int>(random_() % ranks_.size());
    ranks_[static_cast<size_t>(running_)].turn.notify_one();
  }
  for (std::thread& thread : threads)
    thread.join();
  return ends;
}

}  // namespace brigade::test::simulation
