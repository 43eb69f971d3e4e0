// The schedulers of tests/reference/generate_schedules.py, under the same names. Two groups with initial learning rates
// 0.1 and 0.003 and momentum 0.9.
#pragma once

#include <brigade/optim/optim.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace brigade::test {

using namespace optim;  // NOLINT: the table is about nothing else
using Made = std::shared_ptr<LRScheduler>;
using List = std::vector<Made>;

struct Schedule {
  std::string name;
  std::function<Made(SGD&)> make;
};

inline Made chain(SGD& o) {
  return std::make_shared<ChainedScheduler>(
      List{std::make_shared<LinearLR>(o, 0.1, 1.0, 20), std::make_shared<ExponentialLR>(o, 0.99)});
}

inline std::vector<Schedule> schedules() {
  return {
      {"StepLR", [](SGD& o) -> Made { return std::make_shared<StepLR>(o, 7, 0.7); }},
      {"MultiStepLR",
       [](SGD& o) -> Made {
         return std::make_shared<MultiStepLR>(o, std::vector<int64_t>{30, 3, 10, 10, 150}, 0.3);
       }},
      {"ExponentialLR", [](SGD& o) -> Made { return std::make_shared<ExponentialLR>(o, 0.97); }},
      {"PolynomialLR", [](SGD& o) -> Made { return std::make_shared<PolynomialLR>(o, 150, 2.5); }},
      {"LambdaLR",
       [](SGD& o) -> Made {
         return std::make_shared<LambdaLR>(
             o, std::vector<LambdaLR::Function>{[](int64_t e) { return 1.0 / static_cast<double>(1 + e); },
                                                [](int64_t e) { return std::pow(0.95, static_cast<double>(e)); }});
       }},
      {"MultiplicativeLR",
       [](SGD& o) -> Made {
         return std::make_shared<MultiplicativeLR>(o,
                                                   [](int64_t e) { return 0.99 + 0.01 / static_cast<double>(1 + e); });
       }},
      {"ConstantLR", [](SGD& o) -> Made { return std::make_shared<ConstantLR>(o, 0.3, 9); }},
      {"LinearLR", [](SGD& o) -> Made { return std::make_shared<LinearLR>(o, 0.01, 0.9, 60); }},
      {"LinearLR defaults", [](SGD& o) -> Made { return std::make_shared<LinearLR>(o); }},
      {"CosineAnnealingLR", [](SGD& o) -> Made { return std::make_shared<CosineAnnealingLR>(o, 60, 0.001); }},
      {"CosineAnnealingLR to zero", [](SGD& o) -> Made { return std::make_shared<CosineAnnealingLR>(o, 10); }},
      {"CosineAnnealingWarmRestarts",
       [](SGD& o) -> Made { return std::make_shared<CosineAnnealingWarmRestarts>(o, 10, 2, 1e-4); }},
      {"OneCycleLR",
       [](SGD& o) -> Made {
         return std::make_shared<OneCycleLR>(o, OneCycleOptions{.max_lr = {0.5, 0.02}, .total_steps = 300});
       }},
      {"OneCycleLR linear",
       [](SGD& o) -> Made {
         return std::make_shared<OneCycleLR>(o, OneCycleOptions{.max_lr = {0.5},
                                                                .epochs = 60,
                                                                .steps_per_epoch = 5,
                                                                .pct_start = 0.2,
                                                                .anneal_strategy = AnnealStrategy::Linear,
                                                                .base_momentum = {0.8, 0.7},
                                                                .max_momentum = {0.9},
                                                                .div_factor = 10,
                                                                .final_div_factor = 100,
                                                                .three_phase = true});
       }},
      {"warm-up and cosine",
       [](SGD& o) -> Made {
         return std::make_shared<SequentialLR>(
             o, List{std::make_shared<LinearLR>(o, 0.01, 1.0, 20), std::make_shared<CosineAnnealingLR>(o, 180, 1e-5)},
             std::vector<int64_t>{20});
       }},
      {"sequential of four",
       [](SGD& o) -> Made {
         return std::make_shared<SequentialLR>(
             o,
             List{std::make_shared<ConstantLR>(o, 0.1, 5), std::make_shared<ExponentialLR>(o, 0.9),
                  std::make_shared<StepLR>(o, 20, 0.5), std::make_shared<CosineAnnealingWarmRestarts>(o, 30)},
             std::vector<int64_t>{10, 60, 150});
       }},
      {"sequential with a milestone at 0",
       [](SGD& o) -> Made {
         return std::make_shared<SequentialLR>(o,
                                               List{std::make_shared<LinearLR>(o), std::make_shared<StepLR>(o, 8, 0.5),
                                                    std::make_shared<MultiStepLR>(o, std::vector<int64_t>{3, 4})},
                                               std::vector<int64_t>{0, 100});
       }},
      {"chained", chain},
      {"chained, then polynomial",
       [](SGD& o) -> Made {
         return std::make_shared<SequentialLR>(o, List{chain(o), std::make_shared<PolynomialLR>(o, 100)},
                                               std::vector<int64_t>{60});
       }},
      {"OneCycle in a sequence",
       [](SGD& o) -> Made {
         return std::make_shared<SequentialLR>(
             o,
             List{std::make_shared<ConstantLR>(o, 0.5, 100),
                  std::make_shared<OneCycleLR>(o, OneCycleOptions{.max_lr = {0.3}, .total_steps = 250})},
             std::vector<int64_t>{59});
       }},
  };
}

struct Plateau {
  std::string name;
  ReduceLROnPlateauOptions options;
};
inline std::vector<Plateau> plateaus() {
  return {
      {"defaults", {}},
      {"relative threshold", {.factor = 0.5, .patience = 2, .threshold = 0.05}},
      {"largest, with least rates",
       {.mode = PlateauMode::Max,
        .factor = 0.3,
        .patience = 1,
        .threshold = 0.1,
        .threshold_mode = ThresholdMode::Absolute,
        .cooldown = 4,
        .min_lr = {0.001, 1e-5}}},
      {"changes too small", {.factor = 0.1, .patience = 0, .eps = 0.0001}},
      {"absolute threshold",
       {.patience = 3, .threshold = 0.01, .threshold_mode = ThresholdMode::Absolute, .cooldown = 2}},
  };
}

}  // namespace brigade::test
