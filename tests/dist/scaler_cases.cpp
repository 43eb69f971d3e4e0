// A gradient scaler on several ranks: all skip a step or none does, by the agreement that each step needs anyway.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <brigade/amp/grad_scaler.h>
#include <brigade/dist/checks/values.h>
#include <brigade/dist/diagnosis/advisories.h>

#include <limits>

namespace brigade::test::scaler_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

using Ddp = dist::DistributedDataParallel<Net>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_last(const dist::ProcessGroupPtr& group) { return group->rank() == group->size() - 1; }

// Scaling by a power of two changes no bit of a mantissa.
void check_as_without(const std::string& backend, int ranks) {
  for (const bool unscales : {false, true}) {
    CAPTURE(unscales);
    expect_well(backend, ranks, [unscales](const dist::ProcessGroupPtr& group) -> std::string {
      manual_seed(1);
      Net plain, scaled;
      scaled->load_state_dict(plain->state_dict());
      Ddp plain_ddp(plain, group), scaled_ddp(scaled, group);
      optim::SGD of_plain(plain->parameters(), {.lr = 0.1, .momentum = 0.9});
      optim::SGD of_scaled(scaled->parameters(), {.lr = 0.1, .momentum = 0.9});
      amp::GradScaler scaler({.init_scale = 1024, .growth_interval = 2});
      for (int s = 0; s < 5; ++s) {
        const Tensor batch = batch_of(group->rank(), s);
        of_plain.zero_grad();
        loss_of(plain_ddp(batch)).backward();
        if (unscales) optim::clip_grad_norm_(plain->parameters(), 0.01);
        of_plain.step();
        of_scaled.zero_grad();
        scaler.scale(loss_of(scaled_ddp(batch))).backward();
        if (unscales) {
          scaler.unscale_(of_scaled);
          optim::clip_grad_norm_(scaled->parameters(), 0.01);
        }
        const uint64_t before = group->flight_recorder().entries().back().sequence;
        if (!scaler.step(of_scaled)) return "a step was skipped";
        if (const uint64_t added = group->flight_recorder().entries().back().sequence - before; added != 1)
          return fmt::format("{} collectives in a step", added);
        scaler.update();
      }
      if (scaler.get_scale() != 4096) return fmt::format("the scale is {}", scaler.get_scale());
      if (const auto said = scaled_ddp.advisories(); !said.empty()) return said.front().message;
      return compare(values_of(scaled->parameters()), values_of(plain->parameters()), 0);
    });
  }
}
const AddRankCase add_as_without("a scaled step is the step without a scaler, in one collective", &check_as_without,
                                 everywhere({2, 3}));

// Three optimizers, one scaler. The last rank holds an infinity that no reduction spreads: in a gradient that it
// replaces by hand after the reduction, of a parameter that the wrapper ignores.
std::string check_one_rank_only(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  Net first, second, third;
  Ddp one(first, group, {.parameters_and_buffers_to_ignore = {"c.bias"}}), two(second, group), three(third, group);
  optim::Adam of_first(first->parameters(), {.lr = 0.1}), of_second(second->parameters(), {.lr = 0.1}),
      of_third(third->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 64});
  const Values before = values_of(first->parameters());
  for (int s = 0; s < 3; ++s) {
    of_first.zero_grad();
    of_second.zero_grad();
    of_third.zero_grad();
    const Tensor batch = batch_of(group->rank(), s);
    scaler.scale(loss_of(one(batch)) + loss_of(two(batch)) + loss_of(three(batch))).backward();
    if (s == 0 && is_last(group)) first->c->bias.set_grad(full({3}, kInfinity, kFloat64));
    if (s > 0) first->c->bias.set_grad(zeros({3}, kFloat64));
    const bool stepped = scaler.step(of_first);
    if (stepped != (s > 0)) return fmt::format("step {} of the first optimizer: {}", s, stepped);
    if (!scaler.step(of_second) || !scaler.step(of_third)) return "another optimizer was skipped";
    if (s == 0 && values_of(first->parameters()) != before) return "a weight has moved in a skipped step";
    scaler.update();
    if (scaler.get_scale() != 32) return fmt::format("the scale is {}", scaler.get_scale());
  }
  for (const Net& net : {first, second, third}) {
    if (!dist::verify_consistency(*group, net).consistent()) return "the ranks differ";
  }
  return of_first.steps_skipped() == 1 && of_second.steps_skipped() == 0 ? "" : "counts of skipped steps";
}
const AddRankCase add_one_rank_only("an infinity on one rank only: all ranks skip that optimizer, and keep one scale",
                                    &check_one_rank_only, everywhere({2, 3}));

// The program unscales the optimizer and never steps it: update() asks the other ranks.
std::string check_never_stepped(const dist::ProcessGroupPtr& group) {
  for (const bool is_capturable : {false, true}) {
    manual_seed(1);
    Net net;
    Ddp ddp(net, group, {.parameters_and_buffers_to_ignore = {"c.bias"}});
    optim::SGD optimizer(net->parameters(), {.lr = 0.1});
    amp::GradScaler scaler({.init_scale = 64, .capturable = is_capturable});
    scaler.scale(loss_of(ddp(batch_of(group->rank(), 0)))).backward();
    net->c->bias.set_grad(full({3}, is_last(group) ? kInfinity : 0.0, kFloat64));
    scaler.unscale_(optimizer);
    scaler.update();
    if (scaler.get_scale() != 32) return fmt::format("the scale is {}", scaler.get_scale());
  }
  return "";
}
const AddRankCase add_never_stepped("an optimizer that is unscaled and never stepped counts on all ranks alike",
                                    &check_never_stepped, everywhere({2}));

// The scale is in memory, and no rank reads what was found: an infinity on one rank stops the step of all. The second
// optimizer is unscaled in each iteration, and steps in every other one.
std::string check_capturable(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  Net first, second;
  Ddp one(first, group, {.parameters_and_buffers_to_ignore = {"c.bias"}}), two(second, group);
  optim::SGD of_first(first->parameters(), {.lr = 0.1, .momentum = 0.9}), of_second(second->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 64, .capturable = true});
  for (int s = 0; s < 4; ++s) {
    of_first.zero_grad();
    of_second.zero_grad();
    const Tensor batch = batch_of(group->rank(), s);
    const Values before = values_of(first->parameters()), before_second = values_of(second->parameters());
    scaler.scale(loss_of(one(batch)) + loss_of(two(batch))).backward();
    first->c->bias.set_grad(full({3}, s == 0 && is_last(group) ? kInfinity : 0.0, kFloat64));
    scaler.unscale_(of_second);
    scaler.step(of_first);
    if (s % 2 == 0) scaler.step(of_second);
    if ((values_of(first->parameters()) == before) != (s == 0)) return fmt::format("the first net in step {}", s);
    if ((values_of(second->parameters()) == before_second) != (s % 2 != 0)) return fmt::format("the second net, {}", s);
    scaler.update();
    if (scaler.get_scale() != 32) return fmt::format("the scale is {}", scaler.get_scale());
  }
  for (const Ddp* const each : {&one, &two}) {
    if (!each->advisories().empty()) return each->advisories().front().message;
  }
  for (const Net& net : {first, second}) {
    if (!dist::verify_consistency(*group, net).consistent()) return "the ranks differ";
  }
  return "";
}
const AddRankCase add_capturable("a capturable scaler: an infinity on one rank stops all, and keeps one scale",
                                 &check_capturable, everywhere({2, 3}));

// Results that only one rank keeps on its device could not be combined.
std::string check_capturable_on_one(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  Net net;
  Ddp ddp(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 64, .capturable = is_last(group)});
  scaler.scale(loss_of(ddp(batch_of(group->rank(), 0)))).backward();
  return expect_error<dist::ConsistencyError>([&] { scaler.step(optimizer); }, {"loss scaler", "capturable"});
}
const AddRankCase add_capturable_on_one("a scaler that is capturable on one rank only is reported before the step",
                                        &check_capturable_on_one, everywhere({2, 3}));

// The last rank forgets an update(): its scale grows later.
std::string check_other_scale(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  Net net;
  Ddp ddp(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 64, .growth_interval = 1});
  const auto train = [&](int s) {
    optimizer.zero_grad();
    scaler.scale(loss_of(ddp(batch_of(group->rank(), s)))).backward();
    scaler.step(optimizer);
  };
  train(0);
  if (is_last(group)) {
    scaler.update(64);
  } else {
    scaler.update();
  }
  const Values before = values_of(net->parameters());
  const std::string problem = expect_error<dist::ConsistencyError>(
      [&] {
        try {
          train(1);
        } catch (const dist::ConsistencyError& error) {
          // Gradients that differ once they are unscaled are not a separate fault.
          if (error.verdicts().size() == 1) throw;
        }
      },
      {"scale of loss scaler differs between the ranks", " 128", " 64", "update()"});
  if (!problem.empty()) return problem;
  return values_of(net->parameters()) == before ? "" : "a weight has moved";
}
const AddRankCase add_other_scale("ranks whose scales differ are reported before a weight moves", &check_other_scale,
                                  everywhere({2, 3}));

// Only the last rank steps through the scaler.
std::string check_scaler_on_one(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  Net net;
  Ddp ddp(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1, .enabled = is_last(group)});
  scaler.scale(loss_of(ddp(batch_of(group->rank(), 0)))).backward();
  return expect_error<dist::ConsistencyError>([&] { scaler.step(optimizer); },
                                              {"whether a loss scaler steps differs", "scaler.step(optimizer)"});
}
const AddRankCase add_scaler_on_one("a scaler on one rank only is reported before the step", &check_scaler_on_one,
                                    everywhere({2, 3}));

// An initial scale that is too large for a few steps is not reported; one that stays too large is.
std::string check_back_off(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  Net net;
  Ddp ddp(net, group);
  const dist::AdvisoryCollector quiet;
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 64});
  const auto train = [&](double factor) {
    optimizer.zero_grad();
    scaler.scale(loss_of(ddp(batch_of(group->rank(), 0))) * factor).backward();
    scaler.step(optimizer);
    scaler.update();
  };
  const auto said = [&] {
    return std::ranges::any_of(ddp.advisories(), [](const dist::Verdict& each) {
      return each.kind == "non_finite_gradients" && each.message.find("without effect") != std::string::npos;
    });
  };
  for (int s = 0; s < 6; ++s)
    train(kInfinity);
  train(1.0);
  if (scaler.get_scale() != 1) return fmt::format("the scale is {}", scaler.get_scale());
  if (!ddp.advisories().empty()) return "a healthy start: " + ddp.advisories().front().message;
  for (int s = 0; s < 23; ++s)
    train(kInfinity);
  if (said()) return "said too early";
  train(kInfinity);
  return said() ? "" : "nothing was said of a scale that falls for ever";
}
const AddRankCase add_back_off("a scale that backs off is no fault, one that falls for ever is reported",
                               &check_back_off, everywhere({2}));

// update() asks about an optimizer that was unscaled and not stepped: earlier writes by hand are still compared in its
// next step.
std::string check_written_before_question(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  Net net;
  Ddp ddp(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 64});
  const auto backward = [&](int s) {
    optimizer.zero_grad();
    scaler.scale(loss_of(ddp(batch_of(group->rank(), s)))).backward();
  };
  backward(0);
  scaler.step(optimizer);
  scaler.update();
  backward(1);
  if (is_last(group)) net->c->bias.detach().fill_(0.5);
  scaler.unscale_(optimizer);
  scaler.update();
  backward(2);
  return expect_error<dist::ConsistencyError>([&] { scaler.step(optimizer); }, {"c.bias", "fill_"});
}
const AddRankCase add_written_before_question("a question about a step that is not taken forgets no write by hand",
                                              &check_written_before_question, everywhere({2, 3}));

// A gradient that float16 cannot hold at any scale: the operation is named, and the timeline keeps the history.
std::string check_operation_named(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  Net net;
  net->to(kFloat32);
  Ddp ddp(net, group);
  ddp.timeline().keep(30);
  const dist::AdvisoryCollector quiet;
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1 << 20});
  unsigned line = 0;
  for (int s = 0; s < 24; ++s) {
    optimizer.zero_grad();
    const Tensor out = ddp(batch_of(group->rank(), 0).to(kFloat32));
    const Tensor half = out.to(kFloat16);
    const bool overflows = s != 2 && is_last(group);
    line = __LINE__ + 1;  // its gradient is cast to float16
    const Tensor wide = half.to(kFloat32);
    scaler.scale((wide * (overflows ? 1e30 : 1e-3)).sum()).backward();
    scaler.step(optimizer);
    scaler.update();
    if (s == 2) scaler.update(1 << 20);
  }
  const auto& rounds = ddp.timeline().rounds();
  if (rounds.size() != 24) return fmt::format("{} rounds", rounds.size());
  for (size_t s = 0; s < rounds.size(); ++s) {
    if (rounds[s].steps.size() != 1) return fmt::format("{} steps after backward {}", rounds[s].steps.size(), s);
    const dist::StepEvents& step = rounds[s].steps[0];
    const bool looked = s != 0 && s != 2 && s != 3;  // after a backward that was not finite
    const std::string named = fmt::format("to at dist/scaler_cases.cpp:{}", line);
    if (rounds[s].non_finite != (looked && is_last(group) ? named : ""))
      return fmt::format("backward {}: '{}', not {}", s, rounds[s].non_finite, named);
    // The mean is infinite on every rank.
    if (step.skipped != (s != 2) || step.found_inf != step.skipped || step.optimizer != "SGD")
      return fmt::format("step {}: skipped {}, found {}", s, step.skipped, step.found_inf);
    const double scale = s <= 2 ? std::exp2(20.0 - static_cast<double>(s)) : std::exp2(23.0 - static_cast<double>(s));
    if (step.loss_scale != scale) return fmt::format("step {} at scale {}, not {}", s, step.loss_scale, scale);
  }
  return "";
}
const AddRankCase add_operation_named(
    "the operation that leaves float16 in backward is named, and each step's scale kept", &check_operation_named,
    everywhere({2}));

// Gradients sent as float16 at too large a scale: finite on each rank, infinite after the sum. All ranks skip the step,
// DDP reports it once and not as an error; dividing before the cast avoids it.
std::string check_overflow_in_reduction(const dist::ProcessGroupPtr& group) {
  for (const bool predivides : {false, true}) {
    manual_seed(1);
    Net net;
    net->to(kFloat32);
    Ddp ddp(net, group, {.reduce_dtype = kFloat16, .gradient_predivide_factor = predivides ? 1024.0 : 1.0});
    const dist::AdvisoryCollector quiet;
    optim::SGD optimizer(net->parameters(), {.lr = 0.1});
    amp::GradScaler scaler({.init_scale = 1 << 20});
    const Values before = values_of(net->parameters());
    int skipped = 0;
    for (int s = 0; s < 12; ++s) {
      optimizer.zero_grad();
      scaler.scale(loss_of(ddp(batch_of(group->rank(), s).to(kFloat32)))).backward();
      skipped += scaler.step(optimizer) ? 0 : 1;
      scaler.update();
      if (s == 0 && !predivides && values_of(net->parameters()) != before) return "a weight has moved";
    }
    const auto said = ddp.advisories();
    if (predivides && (skipped > 0 || !said.empty())) return fmt::format("{} skipped with predivision", skipped);
    if (!predivides && (skipped == 0 || skipped > 10)) return fmt::format("{} skipped", skipped);
    if (!predivides && (said.size() != 1 || said[0].kind != "hook_result" || said[0].severity != dist::Severity::Note))
      return fmt::format("{} advisories{}", said.size(), said.empty() ? "" : ": " + said[0].message);
    if (!dist::verify_consistency(*group, net).consistent()) return "the ranks differ";
  }
  return "";
}
const AddRankCase add_overflow_in_reduction(
    "what the reduction's dtype cannot hold is skipped by the scaler, and noted", &check_overflow_in_reduction,
    everywhere({2, 3}));

// The scaler belongs to another model: it does not skip the step here, so the overflow stays an error.
std::string check_scaler_of_another_model(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  Net net, other;
  net->to(kFloat32);
  Ddp ddp(net, group, {.reduce_dtype = kFloat16});
  amp::GradScaler scaler({.init_scale = 64});
  optim::SGD of_other(other->parameters(), {.lr = 0.1});
  scaler.scale(loss_of(other(batch_of(0, 0)))).backward();
  scaler.step(of_other);
  scaler.update();
  return expect_error<dist::ReductionError>(
      [&] { (loss_of(ddp(batch_of(group->rank(), 0).to(kFloat32))) * 1e7).backward(); }, {"its range was exceeded"});
}
const AddRankCase add_scaler_of_another_model("a scaler of another model hides no overflow in the reduction",
                                              &check_scaler_of_another_model, everywhere({2}));

}  // namespace brigade::test::scaler_cases
