// Random models on random ranks against an oracle: one process that runs each rank's part by itself and records which
// gradients exist. BRIGADE_SEEDS sets the number of models (default 2,000; fewer under a sanitizer).
#include "processes.h"

#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <set>

namespace brigade::test::random_models_threads_test {
enum class Cut { None, Detach, NoGrad };

// One line of a model: node = tanh(layer(nodes[input])), on some ranks only, perhaps behind a cut.
struct Line {
  size_t layer;
  size_t input;  // node; node 0 is the batch
  Cut cut;
  uint32_t ranks;    // bit r: rank r runs it; the others pass the input on
  uint32_t in_loss;  // bit r: the node is in rank r's loss
};

struct Program {
  int ranks;
  size_t layers;
  std::set<size_t> frozen;
  std::vector<Line> lines;
  bool find_unused;
  double bucket_mb;
};

Program random_program(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t n) { return random() % n; };
  Program program;
  program.ranks = 2 + static_cast<int>(below(3));
  program.layers = 1 + below(5);
  for (size_t layer = 0; layer < program.layers; ++layer) {
    if (program.frozen.size() + 1 < program.layers && below(8) == 0) program.frozen.insert(layer);
  }
  const uint32_t all = (1U << program.ranks) - 1;
  const size_t count = 1 + below(7);
  // Half of the programs are complete, so that strict mode passes too.
  const bool tame = below(2) == 0;
  for (size_t i = 0; i < count; ++i) {
    Line line;
    line.layer = tame && i < program.layers ? i : below(program.layers);
    line.input = tame ? i : below(i + 1);
    line.cut = tame || below(4) != 0 ? Cut::None : below(2) == 0 ? Cut::Detach : Cut::NoGrad;
    line.ranks = tame || below(3) != 0 ? all : static_cast<uint32_t>(random()) & all;
    line.in_loss =
        tame || below(2) == 0 ? all : static_cast<uint32_t>(random()) & all & static_cast<uint32_t>(random());
    program.lines.push_back(line);
  }
  program.find_unused = below(2) == 0;
  program.bucket_mb = below(3) == 0 ? 25 : below(2) == 0 ? 2e-4 : 1e-6;
  return program;
}

struct RandomModelImpl : nn::Module {
  const Program& program;
  std::vector<nn::Linear> layers;
  explicit RandomModelImpl(const Program& p) : program(p) {
    for (size_t i = 0; i < p.layers; ++i) {
      layers.push_back(register_module(fmt::format("l{}", i), nn::Linear(3, 3, false)));
      layers.back()->to(kFloat64);
      if (p.frozen.contains(i)) layers.back()->requires_grad_(false);
    }
  }
  // The loss of a rank; it always has a history, if only through `anchor`.
  Tensor forward(const Tensor& x, int rank, const Tensor& anchor) {
    std::vector<Tensor> nodes{x};
    Tensor loss = anchor.sum() * 0.0;
    for (const Line& line : program.lines) {
      const Tensor& input = nodes[line.input];
      Tensor node = input;
      if (line.ranks >> rank & 1) {
        if (line.cut == Cut::NoGrad) {
          const NoGradGuard no_grad;
          node = brigade::tanh(layers[line.layer](input));
        } else {
          node = brigade::tanh(layers[line.layer](line.cut == Cut::Detach ? input.detach() : input));
        }
      }
      if (line.in_loss >> rank & 1) loss = loss + mean(square(node));
      nodes.push_back(node);
    }
    return loss;
  }
};
BRIGADE_MODULE(RandomModel);

Tensor batch_of(int rank) {
  RandomGenerator generator(40 + static_cast<uint64_t>(rank));
  return randn({4, 3}, kFloat64, &generator);
}

// The gradients of one rank alone, undefined where there is none.
std::vector<Tensor> alone(const Program& program, uint64_t seed, int rank) {
  manual_seed(seed);
  RandomModel model(program);
  const Tensor anchor = zeros({1}, kFloat64).requires_grad_();
  model(batch_of(rank), rank, anchor).backward();
  std::vector<Tensor> gradients;
  for (const nn::Linear& layer : model->layers)
    gradients.push_back(layer->weight.grad());
  return gradients;
}

// The causes that may be reported for a layer without a gradient on a rank, from the program and not the tape.
std::set<std::string> plausible_causes(const Program& program, size_t layer, int rank, bool reached_any) {
  // Which nodes depend on the layer, whatever cuts there are; and does the loss?
  std::vector<bool> depends{false};
  bool used = false;
  bool in_loss = false;
  bool cut_on_the_way = false;
  for (const Line& line : program.lines) {
    const bool runs = line.ranks >> rank & 1;
    const bool uses = runs && line.layer == layer;
    used = used || uses;
    depends.push_back(depends[line.input] || uses);
    if (depends.back() && runs && line.cut != Cut::None) cut_on_the_way = true;
    if (depends.back() && (line.in_loss >> rank & 1)) in_loss = true;
  }
  if (!used)
    return reached_any ? std::set<std::string>{"module_not_called"} : std::set<std::string>{"loss_not_connected"};
  if (in_loss) return {"detached", "no_grad"};
  std::set<std::string> causes{"output_dropped"};
  if (cut_on_the_way) causes.insert({"detached", "no_grad"});
  return causes;
}

// Returns "" when the run of all ranks matches the oracle.
std::string expect_right(uint64_t seed) {
  const Program program = random_program(seed);
  std::vector<std::vector<Tensor>> by_rank;
  for (int r = 0; r < program.ranks; ++r)
    by_rank.push_back(alone(program, seed, r));
  std::vector<std::string> wrong(static_cast<size_t>(program.ranks));
  dist::run_threads(program.ranks, [&](dist::ProcessGroupPtr group) {
    const int rank = group->rank();
    std::string& mine = wrong[static_cast<size_t>(rank)];
    manual_seed(seed);
    RandomModel model(program);
    dist::DistributedDataParallel<RandomModel> ddp(model, group,
                                                   {.find_unused_parameters = program.find_unused,
                                                    .bucket_cap_mb = program.bucket_mb,
                                                    .first_bucket_mb = program.bucket_mb});
    const Tensor anchor = zeros({1}, kFloat64).requires_grad_();
    // Which ranks miss which layers, according to the oracle.
    std::vector<std::vector<int>> missing(program.layers);
    bool unused = false;
    bool someone_reached = false;
    std::vector<bool> reached(static_cast<size_t>(program.ranks), false);
    for (size_t layer = 0; layer < program.layers; ++layer) {
      for (int r = 0; r < program.ranks; ++r) {
        const bool has = by_rank[static_cast<size_t>(r)][layer].defined();
        if (has) reached[static_cast<size_t>(r)] = someone_reached = true;
        if (!has && !program.frozen.contains(layer)) missing[layer].push_back(r);
      }
      unused = unused || !missing[layer].empty();
    }
    const bool error = unused && !program.find_unused && someone_reached;
    try {
      ddp(batch_of(rank), rank, anchor).backward();
      if (error) mine = "nothing was raised";
    } catch (const dist::ReductionError& raised) {
      if (!error) {
        mine = std::string("raised: ") + raised.what();
        return;
      }
      size_t named = 0;
      for (const dist::Verdict& verdict : raised.verdicts()) {
        for (const dist::ParameterVerdict& parameter : verdict.parameters) {
          ++named;
          const size_t layer = std::strtoul(parameter.name.c_str() + 1, nullptr, 10);
          if (parameter.missing_ranks != missing[layer]) mine = parameter.name + " is missing elsewhere";
          const int r = parameter.missing_ranks.front();
          const auto causes = plausible_causes(program, layer, r, reached[static_cast<size_t>(r)]);
          if (!causes.contains(dist::name(verdict.cause.kind)))
            mine = fmt::format("{} on rank {}: cause {} ({})", parameter.name, r, dist::name(verdict.cause.kind),
                               verdict.cause.text);
          if (!verdict.cause.place) mine = parameter.name + ": no line";
        }
      }
      size_t expected = 0;
      for (const auto& ranks : missing)
        expected += !ranks.empty();
      if (named != expected) mine = fmt::format("{} parameters named, expected {}", named, expected);
      return;
    }
    if (!mine.empty()) return;
    for (size_t layer = 0; layer < program.layers; ++layer) {
      const Tensor found = model->layers[layer]->weight.grad();
      Tensor sum;
      int users = 0;
      for (const auto& gradients : by_rank) {
        if (!gradients[layer].defined()) continue;
        ++users;
        sum = sum.defined() ? sum + gradients[layer] : gradients[layer];
      }
      if (found.defined() != (users > 0)) {
        mine = fmt::format("l{} has {} gradient", layer, found.defined() ? "a" : "no");
        return;
      }
      if (users == 0) continue;
      if (ddp.reducer().past().users[static_cast<size_t>(ddp.reducer().find(model->layers[layer]->weight))] != users)
        mine = fmt::format("users of l{}", layer);
      const std::vector<double> a = found.to_vector<double>();
      const std::vector<double> b = (sum * (1.0 / program.ranks)).to_vector<double>();
      for (size_t i = 0; i < a.size(); ++i) {
        if (std::abs(a[i] - b[i]) > 1e-14) mine = fmt::format("gradient of l{}: {} and not {}", layer, a[i], b[i]);
      }
    }
  });
  for (size_t r = 0; r < wrong.size(); ++r) {
    if (!wrong[r].empty()) return fmt::format("rank {} of {}: {}", r, program.ranks, wrong[r]);
  }
  return "";
}

uint64_t seeds() {
  if (const char* text = std::getenv("BRIGADE_SEEDS")) return std::strtoull(text, nullptr, 10);
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return 150;
#else
  return 2000;
#endif
}

TEST_CASE("random models and random usage: flags, gradients and verdicts are those of the oracle") {
  const dist::AdvisoryCollector quiet;
  int errors = 0;
  const uint64_t count = seeds();
  for (uint64_t seed = 1; seed <= count; ++seed) {
    const std::string wrong = expect_right(seed);
    CHECK_MESSAGE(wrong == "", "seed " << seed << ": " << wrong);
    if (!wrong.empty() && ++errors == 10) break;
  }
  MESSAGE(count << " random models");
}

}  // namespace brigade::test::random_models_threads_test
