// Learning rate schedulers, compared with PyTorch's.
#include <optim/lr_scheduler/expected.h>
#include <optim/lr_scheduler/schedules.h>
#include <optim/reference.h>

#include <functional>

namespace brigade::test::lr_scheduler_test {

using doctest::Contains;

std::unique_ptr<SGD> two_groups() {
  return std::unique_ptr<SGD>(new SGD({{{parameter_of(kFloat64)}, {.lr = 0.1, .momentum = 0.9}},
                                       {{parameter_of(kFloat64)}, {.lr = 0.003, .momentum = 0.9}}}));
}

bool same(double value, double expected) { return std::abs(value - expected) <= 1e-15 * std::abs(expected); }

std::vector<double> rates_of(const Optimizer& optimizer) {
  std::vector<double> rates;
  for (size_t g = 0; g < optimizer.groups(); ++g)
    rates.push_back(optimizer.lr(g));
  return rates;
}

// Calls check(entry, its expected epochs) for each entry of `table`. An entry without expected numbers fails the test,
// and so do expected numbers without an entry.
template <class T, class Check>
void with_expected(const std::vector<T>& table, ExpectedEntries entries, const Check& check) {
  for (const T& each : table) {
    CAPTURE(each.name);
    const auto entry = entries.extract(each.name);
    CHECK_MESSAGE(!entry.empty(), "schedules.json has no numbers, or they were taken by another of this name");
    if (!entry.empty()) check(each, entry.mapped());
  }
  for (const auto& [name, epochs] : entries)
    FAIL_CHECK("schedules.json has numbers for '" << name << "', which schedules.h does not make");
}

TEST_CASE("300 epochs of every schedule have PyTorch's rates and momentums") {
  with_expected(schedules(), expected().schedules, [](const Schedule& each, const std::vector<ExpectedEpoch>& epochs) {
    const auto optimizer = two_groups();
    const Made scheduler = each.make(*optimizer);
    auto next = epochs.begin();
    for (int64_t epoch = 0; epoch < 300; ++epoch) {
      CAPTURE(epoch);
      if (epoch > 0) scheduler->step();
      CHECK(scheduler->get_last_lr() == rates_of(*optimizer));
      if (next == epochs.end() || next->epoch != epoch) continue;
      for (size_t g = 0; g < 2; ++g) {
        CAPTURE(g);
        CAPTURE(optimizer->lr(g));
        CHECK(same(optimizer->lr(g), next->lr[g]));
        CHECK(same(optimizer->momentum(g), next->momentum[g]));
      }
      ++next;
    }
    CHECK(next == epochs.end());
    CHECK(scheduler->last_epoch() == 299);
  });
}

TEST_CASE("a schedule goes on from its state, and its optimizer's, bit for bit") {
  for (const Schedule& each : schedules()) {
    CAPTURE(each.name);
    const auto optimizer = two_groups();
    const Made scheduler = each.make(*optimizer);
    for (int epoch = 0; epoch < 37; ++epoch)
      scheduler->step();
    const SchedulerState saved = scheduler->state_dict();
    CHECK(saved.scheduler == scheduler->name());
    const auto other = two_groups();
    const Made resumed = each.make(*other);
    other->load_state_dict(optimizer->state_dict());
    resumed->load_state_dict(saved);
    CHECK(resumed->state_dict().numbers == saved.numbers);
    CHECK(resumed->last_epoch() == 37);
    for (int epoch = 0; epoch < 200; ++epoch) {
      scheduler->step();
      resumed->step();
      CHECK(rates_of(*other) == rates_of(*optimizer));
      CHECK(other->momentum(1) == optimizer->momentum(1));
    }
  }
}

TEST_CASE("a state that does not fit a schedule is refused, and nothing has changed then") {
  const auto optimizer = two_groups();
  StepLR scheduler(*optimizer, 3, 0.5);
  scheduler.step();
  const SchedulerState saved = scheduler.state_dict();
  SchedulerState state = saved;
  state.scheduler = "ExponentialLR";
  CHECK_THROWS_WITH_AS(scheduler.load_state_dict(state),
                       Contains("scheduler state: it was saved from ExponentialLR, this is StepLR"), ValueError);
  state = saved;
  state.numbers[0].second = 50;
  state.numbers.pop_back();
  CHECK_THROWS_WITH_AS(scheduler.load_state_dict(state), Contains("missing: 'gamma'"), ValueError);
  state = saved;
  state.numbers[0].second = 50;
  state.numbers.emplace_back("base_lr.2", 1);
  CHECK_THROWS_WITH_AS(scheduler.load_state_dict(state), Contains("nothing here takes 'base_lr.2'"), ValueError);
  CHECK(scheduler.last_epoch() == 1);
  scheduler.load_state_dict(saved);
}

TEST_CASE("the first beta takes momentum's part in a cycle") {
  Adam optimizer({parameter_of(kFloat64)}, {.lr = 1, .betas = {0.5, 0.9}});
  OneCycleLR scheduler(optimizer, {.max_lr = {0.1}, .total_steps = 20});
  CHECK(optimizer.options().betas[0] == 0.95);
  CHECK(optimizer.momentum() == 0.95);
  while (scheduler.last_epoch() < 5)
    scheduler.step();
  CHECK(optimizer.options().betas[0] == doctest::Approx(0.85));
  CHECK(optimizer.options().betas[1] == 0.9);
  CHECK(optimizer.lr() == doctest::Approx(0.1));
}

TEST_CASE("a schedule works on every optimizer with groups") {
  const auto moves = [](Optimizer& optimizer) {
    const double before = optimizer.lr();
    StepLR scheduler(optimizer, 1, 0.5);
    CHECK(optimizer.lr() == before);
    scheduler.step();
    CHECK(optimizer.lr() == before / 2);
  };
  const std::vector<Tensor> p{parameter_of(kFloat64)};
  moves(*std::make_unique<SGD>(p, SGDOptions{}));
  moves(*std::make_unique<AdamW>(p, AdamWOptions{}));
  moves(*std::make_unique<RMSprop>(p, RMSpropOptions{}));
  moves(*std::make_unique<Adagrad>(p, AdagradOptions{}));
  moves(*std::make_unique<Adadelta>(p, AdadeltaOptions{}));
  moves(*std::make_unique<Lion>(p, LionOptions{}));
  moves(*std::make_unique<RAdam>(p, RAdamOptions{}));
  moves(*std::make_unique<NAdam>(p, NAdamOptions{}));
}

TEST_CASE("an error of a schedule names its class and the line that made it or called its step") {
  const auto optimizer = two_groups();
  SGD& o = *optimizer;
  Adagrad without({parameter_of(kFloat64)}, {});
  const std::vector<LambdaLR::Function> three(3, [](int64_t) { return 2.0; });
  const auto step_lr = [&] { return std::make_shared<StepLR>(o, 3); };
  struct Case {
    const char* name;
    std::function<void()> make;
    uint32_t line;
  };
  OneCycleLR at_its_end(without, {.max_lr = {1}, .total_steps = 1, .cycle_momentum = false});
  at_its_end.step();
  const SchedulerState of_another = StepLR(o, 3).state_dict();
  const List pair{step_lr(), step_lr()};
  const OneCycleOptions three_rates{.max_lr = {1, 2, 3}, .total_steps = 5};
  const std::vector<Case> cases{
      {"LambdaLR", [&] { LambdaLR(o, three); }, __LINE__},
      {"MultiplicativeLR", [&] { MultiplicativeLR(o, three); }, __LINE__},
      {"StepLR", [&] { StepLR(o, 0); }, __LINE__},
      {"PolynomialLR", [&] { PolynomialLR(o, 0); }, __LINE__},
      {"ConstantLR", [&] { ConstantLR(o, 1.5); }, __LINE__},
      {"LinearLR", [&] { LinearLR(o, 0); }, __LINE__},
      {"LinearLR", [&] { LinearLR(o, 0.5, 1, 0); }, __LINE__},
      {"CosineAnnealingLR", [&] { CosineAnnealingLR(o, 0); }, __LINE__},
      {"CosineAnnealingWarmRestarts", [&] { CosineAnnealingWarmRestarts(o, 5, 0); }, __LINE__},
      {"OneCycleLR", [&] { OneCycleLR(o, {.max_lr = {1}}); }, __LINE__},
      {"OneCycleLR", [&] { OneCycleLR(o, three_rates); }, __LINE__},
      {"OneCycleLR", [&] { OneCycleLR(without, {.max_lr = {1}, .total_steps = 5}); }, __LINE__},
      {"OneCycleLR", [&] { at_its_end.step(); }, __LINE__},
      {"ReduceLROnPlateau", [&] { ReduceLROnPlateau(o, {.factor = 1}); }, __LINE__},
      {"SequentialLR", [&] { SequentialLR(o, pair, {}); }, __LINE__},
      {"ChainedScheduler", [&] { ChainedScheduler({}); }, __LINE__},
      {"ExponentialLR", [&] { ExponentialLR(o, 0.5).load_state_dict(of_another); }, __LINE__},
  };
  for (const Case& one : cases) {
    CAPTURE(one.line);
    std::string said;
    try {
      one.make();
    } catch (const ValueError& error) {
      said = error.what();
    }
    CHECK_MESSAGE(said.find(one.name) != said.npos, said);
    CHECK_MESSAGE(said.find("lr_scheduler/lr_scheduler_test.cpp:" + std::to_string(one.line)) != said.npos, said);
  }
  // An object made through a factory such as make_shared does not know the caller's line.
  CHECK_THROWS_WITH_AS(std::make_shared<StepLR>(o, 0), "StepLR: Expected positive integer step_size, but got 0",
                       ValueError);
}

TEST_CASE("options of schedules that do not fit are named, with PyTorch's words") {
  const auto optimizer = two_groups();
  SGD& o = *optimizer;
  const auto twice = [](int64_t) { return 2.0; };
  CHECK_THROWS_WITH_AS(LambdaLR(o, std::vector<LambdaLR::Function>{twice, twice, twice}),
                       Contains("LambdaLR: Expected 2 lr_lambdas, but got 3"), ValueError);
  CHECK_THROWS_AS(LambdaLR(o, LambdaLR::Function()), ValueError);
  CHECK_THROWS_WITH_AS(StepLR(o, 0), Contains("StepLR: Expected positive integer step_size, but got 0"), ValueError);
  CHECK_THROWS_AS(PolynomialLR(o, 0), ValueError);
  CHECK_THROWS_WITH_AS(
      ConstantLR(o, 1.5),
      Contains("ConstantLR: Constant multiplicative factor expected to be between 0 and 1, but got 1.5"), ValueError);
  CHECK_THROWS_WITH_AS(LinearLR(o, 0),
                       Contains("LinearLR: Starting multiplicative factor expected to be greater than 0"), ValueError);
  CHECK_THROWS_WITH_AS(LinearLR(o, 0.5, 1.5),
                       Contains("LinearLR: Ending multiplicative factor expected to be between 0 and 1, but got 1.5"),
                       ValueError);
  CHECK_THROWS_AS(LinearLR(o, 0.5, 1, 0), ValueError);
  CHECK_THROWS_AS(CosineAnnealingLR(o, 0), ValueError);
  CHECK_THROWS_WITH_AS(CosineAnnealingWarmRestarts(o, 0),
                       Contains("CosineAnnealingWarmRestarts: Expected positive integer t_0, but got 0"), ValueError);
  CHECK_THROWS_AS(CosineAnnealingWarmRestarts(o, 5, 0), ValueError);
  CHECK_THROWS_WITH_AS(OneCycleLR(o, {.max_lr = {1}}),
                       Contains("OneCycleLR: You must define either total_steps OR (epochs AND steps_per_epoch)"),
                       ValueError);
  CHECK_THROWS_WITH_AS(OneCycleLR(o, {.max_lr = {1}, .total_steps = -5}),
                       Contains("OneCycleLR: Expected positive integer total_steps, but got -5"), ValueError);
  CHECK_THROWS_WITH_AS(OneCycleLR(o, {.max_lr = {1}, .total_steps = 5, .pct_start = 1.5}),
                       Contains("OneCycleLR: Expected float between 0 and 1 pct_start, but got 1.5"), ValueError);
  CHECK_THROWS_WITH_AS(OneCycleLR(o, {.max_lr = {1, 2, 3}, .total_steps = 5}),
                       Contains("max_lr has 3 values, there are 2 groups"), ValueError);
  CHECK_THROWS_AS(ReduceLROnPlateau(o, {.factor = 1}), ValueError);
  CHECK_THROWS_AS(ReduceLROnPlateau(o, {.min_lr = {0, 0, 0}}), ValueError);
  Adagrad without({parameter_of(kFloat64)}, {});
  CHECK_THROWS_WITH_AS(
      OneCycleLR(without, {.max_lr = {1}, .total_steps = 5}),
      Contains("OneCycleLR: optimizer must support momentum or beta1 with `cycle_momentum` option enabled"),
      ValueError);
  CHECK_THROWS_WITH_AS(without.momentum(), Contains("Adagrad has no momentum"), ValueError);
  OneCycleLR still(without, {.max_lr = {1}, .total_steps = 5, .cycle_momentum = false});
  for (int step = 0; step < 5; ++step)
    still.step();
  CHECK_THROWS_WITH_AS(still.step(),
                       Contains("OneCycleLR: Tried to step 6 times. The specified number of total steps is 5"),
                       ValueError);

  const auto step_lr = [](SGD& of) { return std::make_shared<StepLR>(of, 3); };
  const auto other = two_groups();
  CHECK_THROWS_WITH_AS(SequentialLR(o, {step_lr(o), step_lr(*other)}, {3}),
                       Contains("to belong to the same optimizer, but got StepLR at index 1"), ValueError);
  CHECK_THROWS_WITH_AS(SequentialLR(o, {step_lr(o), step_lr(o)}, {}), Contains("number of milestones to be equal to 0"),
                       ValueError);
  CHECK_THROWS_AS(SequentialLR(o, {step_lr(o), step_lr(o), step_lr(o)}, {5, 3}), ValueError);
  CHECK_THROWS_WITH_AS(SequentialLR(o, {}, {}), Contains("expects at least one scheduler"), ValueError);
  CHECK_THROWS_AS(SequentialLR(o, {nullptr}, {}), ValueError);
  const auto chain = std::make_shared<ChainedScheduler>(List{step_lr(o)});
  CHECK_THROWS_WITH_AS(SequentialLR(o, {step_lr(o), chain}, {3}),
                       Contains("the ChainedScheduler at index 1 cannot begin"), ValueError);
  CHECK_THROWS_AS(ChainedScheduler({}), ValueError);
  CHECK_THROWS_AS(ChainedScheduler({step_lr(o), step_lr(*other)}), ValueError);

  StepLR scheduler(o, 3);
  o.add_param_group({parameter_of(kFloat64)});
  CHECK_THROWS_WITH_AS(scheduler.step(), Contains("has 3 parameter groups, but the scheduler was made for 2"),
                       ValueError);
}

TEST_CASE("ConstantLR comes back from a factor of 0") {
  const auto optimizer = two_groups();
  ConstantLR scheduler(*optimizer, 0, 2);
  CHECK(rates_of(*optimizer) == std::vector<double>{0, 0});
  scheduler.step();
  scheduler.step();
  CHECK(rates_of(*optimizer) == std::vector<double>{0.1, 0.003});
}

TEST_CASE("ReduceLROnPlateau reduces when PyTorch does, and goes on from its state") {
  const Expected all = expected();
  with_expected(plateaus(), all.plateaus, [&](const Plateau& each, const std::vector<ExpectedEpoch>& epochs) {
    const auto optimizer = two_groups(), other = two_groups();
    ReduceLROnPlateau scheduler(*optimizer, each.options), resumed(*other, {.patience = 77});
    auto next = epochs.begin();
    for (int64_t epoch = 0; epoch < 80; ++epoch) {
      CAPTURE(epoch);
      const double metric = all.metrics.at(static_cast<size_t>(epoch));
      scheduler.step(metric);
      CHECK(scheduler.last_epoch() == epoch + 1);
      CHECK(scheduler.get_last_lr() == rates_of(*optimizer));
      if (epoch > 9) {
        resumed.step(metric);
        CHECK(rates_of(*other) == rates_of(*optimizer));
      } else if (epoch == 9) {
        other->load_state_dict(optimizer->state_dict());
        resumed.load_state_dict(scheduler.state_dict());
      }
      if (next == epochs.end() || next->epoch != epoch) continue;
      for (size_t g = 0; g < 2; ++g)
        CHECK(same(optimizer->lr(g), next->lr[g]));
      CHECK(same(scheduler.best(), next->best));
      ++next;
    }
    CHECK(next == epochs.end());
  });
}

TEST_CASE("ReduceLROnPlateau never takes a NaN for better, and refuses groups that came later") {
  const auto optimizer = two_groups();
  ReduceLROnPlateau scheduler(*optimizer, {.patience = 0});
  scheduler.step(NAN);
  CHECK(optimizer->lr() == doctest::Approx(0.01));
  optimizer->add_param_group({parameter_of(kFloat64)});
  CHECK_THROWS_AS(scheduler.step(1), ValueError);
}

TEST_CASE("a rate can be set by hand between steps of a schedule that multiplies") {
  const auto optimizer = two_groups();
  ExponentialLR scheduler(*optimizer, 0.5);
  optimizer->set_lr(0, 8);
  CHECK(optimizer->rate_changes().at(0).by == "set_lr()");
  CHECK(optimizer->rate_changes().at(0).where.line() == __LINE__ - 2);
  CHECK(!optimizer->rate_changes().contains(1));
  scheduler.step();
  CHECK(optimizer->rate_changes().at(0).by == "ExponentialLR.step()");
  CHECK(optimizer->rate_changes().at(1).where.line() == __LINE__ - 2);
  CHECK(optimizer->lr(0) == 4);
  CHECK(optimizer->options(0).lr == 4);
  CHECK_THROWS_AS(optimizer->lr(7), std::out_of_range);
}

}  // namespace brigade::test::lr_scheduler_test
