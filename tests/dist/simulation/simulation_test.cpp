// Random programs of two wrappers over the simulated transport, against an oracle. All ranks run the same calls, so no order
// in which they come may lead to a deadlock or to different collectives; ranks that have stepped as often hold the same
// weights; and where a rank fails in its backward, every error of that step says so.
//
// BRIGADE_SIMULATIONS: how many programs (a few); BRIGADE_SIMULATIONS_SEED: the first seed (1). The line of a program that
// went wrong names its seed: it runs again alone with BRIGADE_SIMULATIONS=1.
#include "simulation.h"

#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/errors/verdict.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <deque>
#include <random>
#include <stdexcept>

namespace brigade::test::simulation_test {
using namespace test::simulation;  // NOLINT: the file is about it

constexpr const char* kFailure = "out of memory on this rank";
constexpr int kSteps = 3;

struct BlockImpl : nn::Module {
  nn::Linear shared{nullptr}, a{nullptr}, b{nullptr};
  bool skipped = false, fails = false;
  explicit BlockImpl(nn::Linear layer) {
    shared = register_module("shared", std::move(layer));
    a = register_module("a", nn::Linear(6, 6));
    b = register_module("b", nn::Linear(6, 6));
  }
  Tensor forward(const Tensor& x) {
    if (skipped) return x;
    const Tensor features = a(x);
    // In the middle of this module's backward.
    if (fails) features.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error(kFailure); });
    return shared(relu(b(relu(features))));
  }
};
BRIGADE_MODULE(Block);

// How the two are called, alike on all ranks.
enum class Calls : uint8_t { Chained, SecondDirectly, FirstDirectly, OneLossEach, OneLossEachSecondDirectly, Twice };
constexpr const char* kCalls[] = {"one after the other",
                                  "the second without its wrapper",
                                  "the first without its wrapper",
                                  "a loss for each",
                                  "a loss for each, the second without its wrapper",
                                  "two backwards through one graph"};

// What the ranks do in a step.
struct Step {
  Calls calls = Calls::Chained;
  bool reversed = false;     // of a loss for each, the second goes first
  bool frozen = false;       // the second wrapper's own parameters: the step of a GAN's generator
  uint64_t skips = 0;        // ranks that leave out the first block
  int gathering = 0;         // micro-batches under no_sync before the one that is reduced
  int gathers_fewer = -1;    // a rank that has one less of them
  int fails = -1;            // a rank whose backward throws
  int reaches_nothing = -1;  // a rank whose loss is of something else
  bool clips = false;
  int evaluates = 0;  // before the step, without a backward: 1 the first, 2 the second
};

struct Program {
  explicit Program(uint64_t seed);
  bool is_sound() const;
  std::string in_words() const;

  int ranks;
  DType dtype;
  bool is_shared, find_unused, has_many_buckets;
  bool has_two_optimizers, has_copies, reports_late;
  std::vector<Step> steps;
};

Program::Program(uint64_t seed) {
  std::mt19937_64 random(seed * 7919 + 1);
  const auto below = [&](int end) { return static_cast<int>(random() % static_cast<uint64_t>(end)); };
  static constexpr int kSizes[] = {2, 2, 3, 3, 4, 8, 27, 32};
  static constexpr DType kTypes[] = {kFloat16, kBFloat16, kFloat32, kFloat32};
  ranks = kSizes[below(8)];
  dtype = kTypes[below(4)];
  is_shared = below(2) == 0;
  find_unused = below(2) == 0;
  has_many_buckets = below(4) != 0;
  has_two_optimizers = below(3) == 0;
  has_copies = below(4) == 0;
  reports_late = below(4) == 0;
  for (int s = 0; s < kSteps; ++s) {
    Step& step = steps.emplace_back();
    step.frozen = below(3) == 0;
    if (!step.frozen && find_unused && below(2) == 0) step.skips = random() & ((uint64_t{1} << ranks) - 1);
    if (below(3) == 0) step.gathering = below(7);
    if (step.gathering > 0 && below(2) == 0) step.gathers_fewer = below(ranks);
    if (below(3) == 0) step.fails = below(ranks);
    if (find_unused && below(4) == 0) step.reaches_nothing = below(ranks);
    if (below(2) == 0) step.calls = static_cast<Calls>(below(std::size(kCalls)));
    if (below(4) == 0) step.evaluates = 1 + below(2);
    step.reversed = below(2) == 0;
    step.clips = below(4) == 0;
  }
}

// Whether a rank can tell from its own calls which reductions its peers run. It can't where it reaches nothing of a wrapper
// that has no forward, or where its peers run several backwards and its own reach nothing: then there is an error.
bool Program::is_sound() const {
  return std::ranges::all_of(steps, [](const Step& step) {
    const bool skips_soundly = step.calls == Calls::Chained || step.calls == Calls::SecondDirectly;
    return (skips_soundly || step.skips == 0) && (step.calls == Calls::Chained || step.reaches_nothing < 0);
  });
}

std::string Program::in_words() const {
  std::string words =
      fmt::format("{} ranks, {}{}{}{}{}{}{}", ranks, name(dtype), is_shared ? ", a shared layer" : "",
                  find_unused ? ", find_unused_parameters" : "", has_many_buckets ? "" : ", one bucket",
                  has_two_optimizers ? ", an optimizer each" : "", has_copies ? ", gradients are copied" : "",
                  reports_late ? ", errors in the next forward" : "");
  for (const Step& step : steps) {
    words += fmt::format(
        "; step: {}{}, frozen {}, skips {:x}, gathers {} (rank {} fewer), fails {}, reaches nothing {}, "
        "evaluates {}, clips {}",
        kCalls[static_cast<size_t>(step.calls)], step.reversed ? " (reversed)" : "", step.frozen, step.skips,
        step.gathering, step.gathers_fewer, step.fails, step.reaches_nothing, step.evaluates, step.clips);
  }
  return words;
}

// What became of a rank.
struct End {
  int steps = 0;
  std::vector<double> weights;
  std::string unnamed;  // an error of a step in which a rank failed, and which does not say so
};

void train(const Program& program, uint64_t seed, const dist::ProcessGroupPtr& group, End& end) {
  const int rank = group->rank();
  manual_seed(1);
  nn::Linear layer(6, 6), another(6, 6);
  Block first(layer), second(program.is_shared ? layer : another);
  first->to(program.dtype);
  second->to(program.dtype);
  dist::DDPOptions options;
  options.find_unused_parameters = program.find_unused;
  options.gradient_as_bucket_view = !program.has_copies;
  if (program.reports_late) options.report_at = dist::ReducerOptions::ReportAt::NextForward;
  if (program.has_many_buckets) options.first_bucket_mb = options.bucket_cap_mb = 1e-5;
  dist::DistributedDataParallel<Block> a(first, group, options), b(second, group, options);
  std::vector<Tensor> parameters = first->parameters();
  std::vector<Tensor> of_second = second->a->parameters();
  for (const auto& each : {second->b->parameters(), program.is_shared ? std::vector<Tensor>() : another->parameters()})
    of_second.insert(of_second.end(), each.begin(), each.end());
  std::deque<optim::SGD> optimizers;
  if (program.has_two_optimizers) optimizers.emplace_back(parameters, optim::SGDOptions{.lr = 1e-2});
  parameters.insert(parameters.end(), of_second.begin(), of_second.end());
  optimizers.emplace_back(program.has_two_optimizers ? of_second : parameters, optim::SGDOptions{.lr = 1e-2});
  RandomGenerator generator(seed * 100 + static_cast<uint64_t>(rank));
  const Tensor other = zeros({1}, program.dtype);
  other.requires_grad_(true);
  for (const Step& step : program.steps) {
    for (const Tensor& each : of_second)
      each.requires_grad_(!step.frozen);
    first->skipped = ((step.skips >> rank) & 1) != 0;
    first->fails = false;
    const auto losses = [&]() -> std::vector<Tensor> {
      const Tensor x = randn({4, 6}, kFloat32, &generator).to(program.dtype);
      const bool apart = step.calls == Calls::OneLossEach || step.calls == Calls::OneLossEachSecondDirectly;
      const bool directly = step.calls == Calls::SecondDirectly || step.calls == Calls::OneLossEachSecondDirectly;
      const Tensor of_first = step.calls == Calls::FirstDirectly ? first(x) : a(x);
      const Tensor& input = apart ? x : of_first;
      const Tensor of_second = directly ? second(input) : b(input);
      if (step.reaches_nothing == rank) return std::vector<Tensor>(apart ? 2 : 1, sum(other));
      // Each loss has a history, whatever was skipped.
      if (apart) return {mean(square(of_first)) + sum(other), mean(square(of_second)) + sum(other)};
      return {mean(square(of_second))};
    };
    size_t number = 0;  // of the loss
    const auto backward = [&](const std::vector<Tensor>& all) {
      for (size_t i = 0; i < all.size(); ++i) {
        number = step.reversed ? all.size() - 1 - i : i;
        if (step.calls == Calls::Twice) all[number].backward({.retain_graph = true});
        all[number].backward();
      }
    };
    try {
      for (optim::SGD& each : optimizers)
        each.zero_grad();
      for (int i = 0; i < step.gathering - (step.gathers_fewer == rank ? 1 : 0); ++i) {
        const auto a_waits = a.no_sync();
        const auto b_waits = b.no_sync();
        backward(losses());
      }
      first->fails = step.fails == rank;
      const std::vector<Tensor> last = losses();
      first->fails = false;
      backward(last);
      if (step.evaluates > 0) (step.evaluates == 1 ? a : b)(ones({4, 6}, program.dtype));
      if (step.clips) nn::utils::clip_grad_norm_(parameters, 1.0);
      for (optim::SGD& each : optimizers)
        if (!step.frozen || &each == &optimizers.front()) each.step();
      ++end.steps;
    } catch (const dist::ReductionError& error) {
      // An error of the step before comes late.
      const bool fails = !program.reports_late && number == 0 && step.fails >= 0 &&
                         step.fails != step.reaches_nothing && ((step.skips >> step.fails) & 1) == 0;
      if (fails && std::string(error.what()).find(kFailure) == std::string::npos) end.unnamed = error.what();
    } catch (const std::runtime_error& error) {
      if (std::string(error.what()) != kFailure) throw;
    }
  }
  for (const Tensor& each : parameters) {
    for (const double value : each.detach().to(kFloat64).to_vector<double>())
      end.weights.push_back(value);
  }
}

struct Found {
  std::string wrong;  // "" for a program that ran as it should
  uint64_t choices = 0, hash = 0;
};

Found simulate(uint64_t seed) {
  const Program program(seed);
  Simulation simulation(program.ranks, seed);
  std::vector<End> ends(static_cast<size_t>(program.ranks));
  const std::vector<std::string> thrown = simulation.run([&](const dist::ProcessGroupPtr& group) {
    train(program, seed, group, ends[static_cast<size_t>(group->rank())]);
  });
  Found found{.wrong = "", .choices = simulation.choices(), .hash = simulation.hash()};
  const bool is_sound = program.is_sound();
  if (is_sound && simulation.is_deadlocked()) found.wrong += "no rank could go on; ";
  if (is_sound && !simulation.mismatch().empty()) found.wrong += "different collectives: " + simulation.mismatch();
  for (size_t r = 0; r < ends.size() && found.wrong.empty(); ++r) {
    if (is_sound && !thrown[r].empty()) found.wrong = fmt::format("rank {} threw: {}", r, thrown[r]);
    if (is_sound && !ends[r].unnamed.empty())
      found.wrong = fmt::format("rank {} was not told which rank failed: {}", r, ends[r].unnamed);
    for (size_t q = 0; q < r; ++q) {
      if (thrown[q].empty() && thrown[r].empty() && ends[q].steps == ends[r].steps &&
          ends[q].weights != ends[r].weights)
        found.wrong = fmt::format("ranks {} and {} hold different weights after {} steps", q, r, ends[r].steps);
    }
  }
  if (!found.wrong.empty()) found.wrong = fmt::format("seed {}: {}\n  {}", seed, found.wrong, program.in_words());
  return found;
}

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* const given = std::getenv(name);
  return given ? std::strtoull(given, nullptr, 10) : otherwise;
}

TEST_CASE("simulated programs of two wrappers come to one end on all ranks, in every order of what the ranks do") {
  const uint64_t count = setting("BRIGADE_SIMULATIONS", 100);
  const uint64_t first = setting("BRIGADE_SIMULATIONS_SEED", 1);
  uint64_t wrong = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Found found = simulate(seed);
    if (found.wrong.empty()) continue;
    ++wrong;
    MESSAGE(found.wrong);
  }
  CHECK_MESSAGE(wrong == 0, wrong, " of ", count, " programs, from seed ", first);
}

TEST_CASE("a simulated program runs the same way each time") {
  for (const uint64_t seed : {3, 8, 21}) {
    const Found once = simulate(seed), again = simulate(seed);
    CHECK(once.choices > 100);
    CHECK(once.choices == again.choices);
    CHECK(once.hash == again.hash);
    CHECK(simulate(seed + 1).hash != once.hash);
  }
}

}  // namespace brigade::test::simulation_test
