// What a region of autocast costs an operation that casts nothing: its time inside of one beside its
// time outside, in turns.
//
//   bench_autocast_cost [--rounds N] [--at-most NS]
#include "number_in.h"

#include <brigade/amp/autocast.h>
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

using namespace brigade;

namespace {

struct Case {
  const char* name;
  std::function<Tensor()> run;
};

// Inputs have the dtype that the rule asks for, so that what is measured is the question.
std::vector<Case> cases() {
  const Tensor lower = full({4, 4}, 0.25, kBFloat16), wide = full({4, 4}, 0.25, kFloat32);
  const Tensor weight = full({4, 4}, 0.25, kBFloat16).requires_grad_();
  return {
      {"add, in no list", [=] { return add(wide, wide); }},
      {"softmax, in CUDA's list only", [=] { return softmax(lower, -1); }},
      {"mm, lower precision", [=] { return mm(lower, lower); }},
      {"mm with a weight, lower precision", [=] { return mm(lower, weight); }},
      {"linear, lower precision", [=] { return linear(lower, lower, {}); }},
      {"mse_loss, float32", [=] { return mse_loss(wide, wide); }},
      {"trace, float32", [=] { return trace(wide); }},
      {"index_copy, widest",
       [=, rows = zeros({1}, kInt64), row = full({1, 4}, 1.0, kFloat32)] { return index_copy(wide, 0, rows, row); }},
  };
}

constexpr int kCalls = 2000;

// Of one call, in ns.
double time_of(const Case& which) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i)
    which.run();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / kCalls;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double time_inside(const Case& which, bool enabled) {
  const amp::autocast region(kCPU, kBFloat16, enabled);
  return time_of(which);
}

struct Cost {
  double outside, inside, difference, ratio;
  double noise;  // the difference of a region that is not enabled
};

Cost cost_of(const Case& which, int rounds) {
  std::vector<double> outside, inside, differences, ratios, noise;
  for (int round = 0; round < rounds; ++round) {
    // Each order as often as the other.
    const bool first = round % 2 == 0;
    const double before = first ? time_inside(which, true) : time_inside(which, false);
    outside.push_back(time_of(which));
    const double after = first ? time_inside(which, false) : time_inside(which, true);
    inside.push_back(first ? before : after);
    differences.push_back(inside.back() - outside.back());
    ratios.push_back(inside.back() / outside.back());
    noise.push_back((first ? after : before) - outside.back());
  }
  return {median(outside), median(inside), median(differences), median(ratios), median(noise)};
}

// The number behind an option; `otherwise` without it, 0 for what is no number above 0.
int option(int argc, char** argv, const std::string& name, int otherwise) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (argv[i] == name) return number_in(argv[i + 1]);
  }
  return otherwise;
}

int usage(std::FILE* out, const char* program, int status) {
  std::fprintf(out,
               "usage: %s [--rounds N] [--at-most NS]\n"
               "Times operations outside and inside of an autocast region, in turns; medians over the rounds (101).\n"
               "noise: of a region that is not enabled, beside outside.\n"
               "Exits with 1 when one costs more than NS ns more inside.\n"
               "Example:\n  OMP_NUM_THREADS=1 %s --at-most 15\n",
               program, program);
  return status;
}

bool known_options(int argc, char** argv) {
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if ((name != "--rounds" && name != "--at-most") || i + 1 == argc) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && (argv[1] == std::string("--help") || argv[1] == std::string("-h"))) return usage(stdout, argv[0], 0);
  const int rounds = option(argc, argv, "--rounds", 101);
  const int at_most = option(argc, argv, "--at-most", 1 << 30);
  if (!known_options(argc, argv) || rounds == 0 || at_most == 0) return usage(stderr, argv[0], 2);
  bool over = false;
  fmt::print("{:<36} {:>10} {:>10} {:>10} {:>8} {:>10}\n", "ns, median", "outside", "inside", "more", "ratio", "noise");
  for (const Case& which : cases()) {
    cost_of(which, 3);  // caches, and the rules that operations keep
    const Cost cost = cost_of(which, rounds);
    over = over || cost.difference > at_most;
    fmt::print("{:<36} {:>10.1f} {:>10.1f} {:>10.1f} {:>8.3f} {:>10.1f}\n", which.name, cost.outside, cost.inside,
               cost.difference, cost.ratio, cost.noise);
  }
  return over ? 1 : 0;
}
