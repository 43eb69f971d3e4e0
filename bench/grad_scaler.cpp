// What a loss scaler costs: training steps of 10 million parameters without one, with one, and with
// one whose steps are fused, in turn.
//
//   bench_grad_scaler [ROUNDS] [BATCH]     31 rounds, batches of 128
//
// Prints the least time of an iteration (forward, backward, step) and of its step alone, for each
// optimizer, and their ratios to those without a scaler. (What else the machine does only adds to a
// time.)
#include "number_in.h"

#include <brigade/amp/grad_scaler.h>
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

using namespace brigade;

namespace {

struct Times {
  std::vector<double> iteration, step;  // milliseconds
};

double least(const std::vector<double>& times) { return *std::min_element(times.begin(), times.end()); }

double now() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A model with its optimizer, trained with the scaler or without.
class Training {
 public:
  using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Tensor>&)>;

  Training(const MakeOptimizer& make, int64_t batch, const amp::GradScalerOptions& options)
      : scaler_(options),
        x_(randn({batch, 1024})),
        net_(nn::Linear(1024, 2048), nn::ReLU(), nn::Linear(2048, 2048), nn::ReLU(), nn::Linear(2048, 1792)),
        optimizer_(make(net_->parameters())) {}

  void run(Times& times) {
    const double begin = now();
    optimizer_->zero_grad();
    const Tensor y = net_(x_);
    scaler_.scale((y * y).mean()).backward();
    const double at_step = now();
    scaler_.step(*optimizer_);
    scaler_.update();
    const double end = now();
    times.iteration.push_back(end - begin);
    times.step.push_back(end - at_step);
  }

 private:
  amp::GradScaler scaler_;
  Tensor x_;
  nn::Sequential net_;
  std::unique_ptr<optim::Optimizer> optimizer_;
};

void compare(const char* name, const Training::MakeOptimizer& make, int rounds, int64_t batch) {
  constexpr size_t kWays = 3;
  const char* const words[kWays] = {"without", "with", "fused"};
  Training trainings[kWays] = {
      {make, batch, {.enabled = false}}, {make, batch, {}}, {make, batch, {.fused_step = true}}};
  Times times[kWays];
  for (int round = -3; round < rounds; ++round) {
    if (round == 0) std::fill(std::begin(times), std::end(times), Times());  // the first rounds warm up
    // In turn, and each first as often: what else the machine does weighs on all.
    for (size_t i = 0; i < kWays; ++i) {
      const size_t way = (i + static_cast<size_t>(round + 3)) % kWays;
      trainings[way].run(times[way]);
    }
  }
  for (size_t way = 0; way < kWays; ++way) {
    const double iteration = least(times[way].iteration), step = least(times[way].step);
    std::printf("%-14s %-8s iteration %8.2f ms (ratio %.3f), of which step %7.2f ms (ratio %.3f)\n", name, words[way],
                iteration, iteration / least(times[0].iteration), step, step / least(times[0].step));
  }
}

template <class O>
Training::MakeOptimizer make(std::remove_cvref_t<decltype(std::declval<O&>().options())> options) {
  return [options](const std::vector<Tensor>& parameters) { return std::make_unique<O>(parameters, options); };
}

int usage(std::FILE* out, const char* program, int status) {
  std::fprintf(out, "usage: %s [ROUNDS] [BATCH]\nExample:\n  OMP_NUM_THREADS=1 %s 31 128\n", program, program);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && argv[1] == std::string_view("--help")) return usage(stdout, argv[0], 0);
  const int rounds = argc > 1 ? number_in(argv[1]) : 31;
  const int batch = argc > 2 ? number_in(argv[2]) : 128;
  if (rounds == 0 || batch == 0 || argc > 3) {
    return usage(stderr, argv[0], 2);
  }
  compare("SGD", make<optim::SGD>({.lr = 1e-3}), rounds, batch);
  compare("SGD, momentum", make<optim::SGD>({.lr = 1e-3, .momentum = 0.9}), rounds, batch);
  compare("Adam", make<optim::Adam>({.lr = 1e-4}), rounds, batch);
  compare("AdamW", make<optim::AdamW>({.lr = 1e-4}), rounds, batch);
  return 0;
}
