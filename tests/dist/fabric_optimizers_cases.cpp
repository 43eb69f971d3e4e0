// Several optimizers on a Fabric: toggling, one update of the loss scale per iteration, and wrong use.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <brigade/amp/grad_scaler.h>
#include <brigade/dist/errors/verdict.h>
#include <brigade/dist/fabric/fabric.h>

namespace brigade::test::fabric_optimizers_cases {
using dist::Fabric;
using dist::FabricOptimizer;
using dist::ProcessGroupPtr;

struct GanImpl : nn::Module {
  nn::Linear generator{nullptr}, discriminator{nullptr};
  GanImpl() {
    generator = register_module("generator", nn::Linear(2, 3));
    discriminator = register_module("discriminator", nn::Linear(3, 1));
  }
  Tensor forward(const Tensor& noise) { return generator(noise); }
};
BRIGADE_MODULE(Gan);

struct ThreeImpl : nn::Module {
  nn::Linear a{nullptr}, b{nullptr}, c{nullptr};
  ThreeImpl() {
    a = register_module("a", nn::Linear(4, 4));
    b = register_module("b", nn::Linear(4, 4));
    c = register_module("c", nn::Linear(4, 2));
  }
  Tensor forward(const Tensor& x) { return c(brigade::tanh(b(brigade::tanh(a(x))))); }
};
BRIGADE_MODULE(Three);

dist::FabricOptions cpu(const char* precision = "32-true", double init_scale = 65536) {
  return {.accelerator = "cpu", .precision = precision, .scaler = {.init_scale = init_scale, .growth_interval = 3}};
}

Tensor batch_of(const ProcessGroupPtr& group, int step, int64_t width) {
  RandomGenerator random(100 + static_cast<uint64_t>(10 * step + group->rank()));
  return randn({4, width}, kFloat32, &random);
}

// A generator and a discriminator share one wrapper, whose strategy does not allow unused parameters.
std::string toggles(const ProcessGroupPtr& group) {
  Fabric fabric(cpu(), group);
  manual_seed(1);
  Gan net;
  net->discriminator->bias.requires_grad_(false);  // stays frozen, whatever is toggled
  optim::SGD of_generator(net->generator->parameters(), {.lr = 0.1});
  optim::SGD of_discriminator(net->discriminator->parameters(), {.lr = 0.1});
  auto [model, opt_g, opt_d] = fabric.setup(net, of_generator, of_discriminator);
  for (int step = 0; step < 3; ++step) {
    const Tensor noise = batch_of(group, step, 2);
    fabric.toggle_optimizer(opt_d);
    if (net->generator->weight.requires_grad()) return "the generator requires grad while the discriminator trains";
    if (net->discriminator->bias.requires_grad()) return "a frozen parameter requires grad";
    opt_g.zero_grad();
    opt_d.zero_grad();
    fabric.backward(mean(square(model->discriminator(model(noise)))));
    if (net->generator->weight.grad().defined()) return "the generator has a gradient";
    opt_d.step();
    fabric.untoggle_optimizer(opt_d);
    fabric.toggle_optimizer(opt_g);
    opt_g.zero_grad();
    opt_d.zero_grad();
    fabric.backward(mean(square(model->discriminator(model(noise)) - 1.0)));
    if (net->discriminator->weight.grad().defined()) return "the discriminator has a gradient";
    opt_g.step();
    fabric.untoggle_optimizer(opt_g);
  }
  if (!net->generator->weight.requires_grad() || !net->discriminator->weight.requires_grad()) return "still frozen";
  // Every parameter is expected again.
  const std::string missed = expect_error<dist::ReductionError>(
      [&, &model = model] { fabric.backward(mean(square(model(batch_of(group, 3, 2))))); },
      {"discriminator.weight", "or set strategy = \"ddp_find_unused_parameters_true\""});
  if (!missed.empty()) return missed;
  fabric.toggle_optimizer(opt_g);
  return expect_error<ValueError>([&] { fabric.toggle_optimizer(opt_d); }, {"SGD is toggled already"});
}
const AddRankCase add_toggles("a toggled optimizer alone gets gradients, and no parameter counts as missing", &toggles,
                              everywhere({2, 3}));

// The order in which a loop steps and clears.
enum class Style { ClearFirst, ClearAll, ClearAfter };

// Three Adams after one backward; returns the scales that were in use. `on_fabric` false: by hand.
std::string three_adams(const ProcessGroupPtr& group, Style style, bool on_fabric) {
  dist::FabricOptions options = cpu("16-mixed", 4194304);  // overflows at first
  Fabric fabric(options, group);
  manual_seed(1);
  Three net;
  optim::Adam a(net->a->parameters(), {.lr = 0.02}), b(net->b->parameters(), {.lr = 0.02}),
      c(net->c->parameters(), {.lr = 0.02});
  std::string scales;
  std::vector<FabricOptimizer> all;
  std::optional<dist::FabricModule<Three>> model;
  std::optional<dist::DistributedDataParallel<Three>> ddp;
  amp::GradScalerOptions scaling = options.scaler;
  amp::GradScaler scaler(scaling);
  if (on_fabric) {
    model = fabric.setup(net);
    auto [first, second, third] = fabric.setup_optimizers(a, b, c);
    all = {first, second, third};
  } else {
    ddp.emplace(net, group);
  }
  for (int step = 0; step < 12; ++step) {
    const Tensor batch = batch_of(group, step, 4);
    if (!on_fabric) {
      for (optim::Adam* each : {&a, &b, &c})
        each->zero_grad();
      Tensor output;
      {
        const amp::autocast region(kCPU, kFloat16);
        output = (*ddp)(batch);
      }
      scaler.scale(mechanisms::loss_of(output.to(kFloat32))).backward();
      for (optim::Adam* each : {&a, &b, &c})
        scaler.step(*each);
      scaler.update();
      scales += fmt::format("{} ", scaler.get_scale());
      continue;
    }
    if (style != Style::ClearAfter) {
      for (FabricOptimizer& each : all)
        each.zero_grad();
    }
    fabric.backward(mechanisms::loss_of((*model)(batch)));
    for (FabricOptimizer& each : all) {
      each.step();
      if (style == Style::ClearAfter) each.zero_grad();
    }
    scales += fmt::format("{} ", fabric.scaler().get_scale());
  }
  return scales + bits_of(net->parameters());
}

void check_three(const std::string& backend, int ranks) {
  expect_well(backend, ranks, [](const ProcessGroupPtr& group) -> std::string {
    const std::string expected = three_adams(group, Style::ClearFirst, false);
    if (expected.find("2097152 ") == std::string::npos) return "the scale was never lowered: " + expected.substr(0, 60);
    for (const Style style : {Style::ClearFirst, Style::ClearAfter}) {
      if (three_adams(group, style, true) != expected)
        return fmt::format("other scales or weights than with one update() per iteration, style {}",
                           static_cast<int>(style));
    }
    return "";
  });
}
const AddRankCase add_three(
    "[003.2] [003.5] three optimizers under 16-mixed: one update per iteration, however the loop clears", &check_three,
    everywhere({2}));

// Two backwards per iteration, and a discriminator that steps in every second one.
std::string alternates(const ProcessGroupPtr& group) {
  for (const Style style : {Style::ClearFirst, Style::ClearAll, Style::ClearAfter}) {
    Fabric fabric(cpu("16-mixed", 1024), group);
    manual_seed(1);
    Gan net;
    optim::SGD of_generator(net->generator->parameters(), {.lr = 0.05});
    optim::SGD of_discriminator(net->discriminator->parameters(), {.lr = 0.05});
    auto [model, opt_g, opt_d] = fabric.setup(net, of_generator, of_discriminator);
    for (int step = 0; step < 6; ++step) {
      for (FabricOptimizer* const each : {&opt_d, &opt_g}) {
        if (each == &opt_d && step % 2 == 1) continue;
        fabric.toggle_optimizer(*each);
        if (style == Style::ClearFirst) each->zero_grad();
        if (style == Style::ClearAll) {
          opt_d.zero_grad();
          opt_g.zero_grad();
        }
        fabric.backward(mean(square(model->discriminator(model(batch_of(group, step, 2))) - 0.5)));
        if (!each->step()) return "a step was skipped";
        if (style == Style::ClearAfter) each->zero_grad();
        fabric.untoggle_optimizer(*each);
      }
    }
    // Three updates double the scale, so it has to grow in six steps.
    if (fabric.scaler().get_scale() < 2048)
      return fmt::format("the scale is {} in style {}", fabric.scaler().get_scale(), static_cast<int>(style));
  }
  return "";
}
const AddRankCase add_alternates("optimizers that step unequally often keep one loss scale", &alternates,
                                 everywhere({2}));

std::string hooks(const ProcessGroupPtr& group) {
  Fabric fabric(cpu(), group);
  manual_seed(1);
  Gan net;
  optim::SGD of_generator(net->generator->parameters(), {.lr = 0.1});
  optim::SGD of_discriminator(net->discriminator->parameters(), {.lr = 0.1});
  auto [model, opt_g, opt_d] = fabric.setup(net, of_generator, of_discriminator);
  int asked = 0;
  // The discriminator steps in every second iteration.
  fabric.set_optimizer_step([&](optim::Optimizer& optimizer, const std::function<bool()>& step) {
    if (&optimizer != &of_discriminator || asked++ % 2 == 0) step();
  });
  for (int i = 0; i < 4; ++i) {
    opt_g.zero_grad();
    opt_d.zero_grad();
    fabric.backward(mean(square(model->discriminator(model(batch_of(group, i, 2))))));
    if (!opt_g.step()) return "a step that moved says that it did not";
    if (opt_d.step() != (i % 2 == 0)) return "a step says the wrong thing";
  }
  if (of_generator.steps_taken() != 4 || of_discriminator.steps_taken() != 2)
    return fmt::format("{} and {} steps", of_generator.steps_taken(), of_discriminator.steps_taken());
  return "";
}
const AddRankCase add_hooks("the optimizer_step hook decides whether an optimizer steps", &hooks, everywhere({2}));

// Row 003 of the known failures: plain backward() under 16-mixed, in the first iteration and in a later one.
std::string plain_backward(const ProcessGroupPtr& group) {
  for (const int first : {0, 2}) {
    Fabric fabric(cpu("16-mixed", 1024), group);
    manual_seed(1);
    Three net;
    optim::SGD sgd(net->parameters(), {.lr = 0.1});
    auto [model, optimizer] = fabric.setup(net, sgd);
    for (int step = 0; step < first; ++step) {
      optimizer.zero_grad();
      fabric.backward(mechanisms::loss_of(model(batch_of(group, step, 4))));
      optimizer.step();
    }
    optimizer.zero_grad();
    mechanisms::loss_of(model(batch_of(group, first, 4))).backward();
    const std::string before = bits_of(net->parameters());
    const std::string phrase = first == 0 ? "but _scale is None" : "comes from a loss that was not scaled";
    // Whichever reads the gradients first, the step or clipping.
    for (const bool clips : {false, true}) {
      const auto use = [&, &opt = optimizer] {
        if (clips) fabric.clip_gradients(opt, {.max_norm = 1});
        opt.step();
      };
      const std::string wrong = expect_error<autograd::ScalerError>(
          use, {phrase, "Under a Fabric of precision 16-mixed the loss is scaled by fabric.backward(loss)"});
      if (!wrong.empty()) return wrong;
    }
    if (bits_of(net->parameters()) != before) return "weights have moved";
  }
  return "";
}
const AddRankCase add_plain("a plain backward() under 16-mixed is an error before the step, with what to call",
                            &plain_backward, everywhere({2}));

// A schedule that each rank feeds with its own loss (row 003, DIV-15): an error before the first step at unequal rates.
std::string own_loss(const ProcessGroupPtr& group) {
  Fabric fabric(cpu(), group);
  manual_seed(1);
  Three net;
  optim::SGD sgd(net->parameters(), {.lr = 0.1});
  auto [model, optimizer] = fabric.setup(net, sgd);
  optim::ReduceLROnPlateau own(sgd, {.patience = 0});
  const auto step = [&, &model = model, &optimizer = optimizer](int i) {
    optimizer.zero_grad();
    fabric.backward(mechanisms::loss_of(model(batch_of(group, i, 4))));
    optimizer.step();
  };
  // On rank 0 the loss falls, on the others it stays; averaged it falls on all.
  step(0);
  const auto loss = [&](int i) { return group->rank() == 0 ? 1.0 / (1 + i) : 1.0; };
  own.step(loss(0));
  own.step(loss(1));
  const std::string wrong = expect_error<dist::ConsistencyError>(
      [&] { step(1); }, {"lr of group 0 differs", "by a value that is the same there"});
  if (!wrong.empty()) return wrong;
  // The correct program averages the loss.
  sgd.set_lr(0, 0.1);
  optim::ReduceLROnPlateau averaged(sgd, {.patience = 0});
  for (int i = 0; i < 3; ++i) {
    step(i + 2);
    averaged.step(fabric.all_reduce(loss(i)));
  }
  return sgd.lr() == 0.1 ? "" : fmt::format("the rate is {}", sgd.lr());
}
const AddRankCase add_own_loss("a schedule fed with the rank's own loss is found before the step", &own_loss,
                               everywhere({2}));

// Row SCL-07: gradients are never cleared.
std::string never_clears(const ProcessGroupPtr& group) {
  for (const char* precision : {"32-true", "16-mixed"}) {
    Fabric fabric(cpu(precision, 1024), group);
    manual_seed(1);
    Three net;
    optim::SGD sgd(net->parameters(), {.lr = 0.01});
    auto [model, optimizer] = fabric.setup(net, sgd);
    const auto step = [&, &model = model, &optimizer = optimizer](int i) {
      fabric.backward(mechanisms::loss_of(model(batch_of(group, i, 4))));
      optimizer.step();
    };
    step(0);
    if (fabric.precision().scales) {
      const std::string wrong = expect_error<autograd::ScalerError>([&] { step(1); }, {"zero_grad()"});
      if (!wrong.empty()) return wrong;
      continue;
    }
    step(1);
    const auto& said = model.ddp()->advisories();
    const bool found = std::any_of(said.begin(), said.end(),
                                   [](const dist::Verdict& each) { return each.kind == "gradients_accumulate"; });
    if (!found) return "nothing was said of gradients that were not cleared";
  }
  return "";
}
const AddRankCase add_never_clears("gradients that are never cleared are named at the step", &never_clears,
                                   everywhere({2}));

}  // namespace brigade::test::fabric_optimizers_cases
