// The recipe `gan`: trains a generator of digits, and has a classifier that has seen only real
// digits name what it makes.
#include <brigade/lab/recipes/gan/step.h>
#include <brigade/lab/recipes/recipe.h>

#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/trace.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/png.h>
#include <brigade/lab/recipes/step_log.h>
#include <brigade/lab/recipes/training.h>

#include <fmt/format.h>

namespace brigade::lab::gan {
namespace {

constexpr double kConfident = 0.9;  // of the probability that the judge gives to its answer

// How real and made images are told apart, and what a classifier sees in the made ones.
void judge(DigitsGan& net, DigitsNet& judge_net, const Examples& real, const TrainOptions& options,
           TrainResult& result) {
  const NoGradGuard no_grad;
  RandomGenerator random(options.seed);
  const int64_t count = real.labels.numel();
  const Tensor noise = randn({count, kGanNoise}, real.images.dtype(), &random).to(real.images.device());
  const Tensor made = net->generator(noise, real.labels);
  const double real_called_real = gt(net->discriminator(real.images).logits, 0.0).to(kFloat64).mean().item();
  const double made_called_real = gt(net->discriminator(made).logits, 0.0).to(kFloat64).mean().item();
  const Tensor probabilities = softmax(judge_net(made), 1);
  const Tensor surest = amax(probabilities, {1});
  result.metrics["discriminator accuracy"] = (real_called_real + 1 - made_called_real) / 2;
  result.metrics["named with confidence"] = gt(surest, kConfident).to(kFloat64).mean().item();
  result.metrics["named as asked"] = eq(argmax(probabilities, 1), real.labels).to(kFloat64).mean().item();
}

// Ten images of each digit.
Tensor sheet_of_digits(DigitsGan& net, const TrainOptions& options, TensorOptions like) {
  const NoGradGuard no_grad;
  RandomGenerator random(options.seed + 1);
  const Tensor noise = randn({100, kGanNoise}, like.dtype, &random).to(like.device);
  const Tensor labels = arange(0, 10).unsqueeze(1).expand({10, 10}).contiguous().flatten().to(like.device);
  return net->generator(noise, labels);
}

TrainResult train_gan(const dist::ProcessGroupPtr& group, const TrainOptions& options) {
  const Form& form = find_form(find_recipe("gan"), options.form);
  dist::Fabric fabric(GanTraining::options_for(form.name, fabric_options(options)), group);
  const auto [train, test] = digits_on(fabric.device(), fabric.precision());
  auto loader = load_in_batches(fabric, train, options);
  const int64_t steps = steps_of(options, loader->size());

  dist::Fabric::seed_everything(options.seed);
  DigitsGan net;
  DigitsNet judge_net;
  net->to(fabric.precision().parameters);
  net->to(fabric.device());
  judge_net->to(fabric.precision().parameters);
  judge_net->to(fabric.device());
  // Two classifiers, so that the one that names the images is not the one that they were made to
  // please. A look at a few steps needs no good ones.
  const int epochs = options.steps > 0 && options.steps < 100 ? 1 : 8;
  net->perception->requires_grad_(true);
  train_classifier(net->perception, train, epochs, options.seed + 1);
  net->perception->requires_grad_(false);
  train_classifier(judge_net, train, epochs, options.seed + 2);

  GanTraining training(net, fabric, form.name, options.lr);
  Progress progress(options, fabric.checkpoint());
  progress.checkpoint.module("model", *net).optimizer("generator", training.for_generator);
  progress.checkpoint.optimizer("discriminator", training.for_discriminator);
  add_loader(progress.checkpoint, *loader);
  progress.resume(steps);
  if (options.trace_steps > 0) training.wrapper().timeline().keep(2 * static_cast<size_t>(options.trace_steps));

  TrainResult result = begun(fabric.device(), progress, loader->size());
  StepLog log(group, options, steps, progress.steps);
  train_on(loader, progress, *group, steps, [&](const data::Example& real) {
    const Tensor noise = noise_of_step(*group, options, progress.steps, {kGanNoise}, real.data.options());
    log.begin();
    const GanTraining::Losses losses = training.step({real.data, real.target, noise});
    log.end({{"generator", losses.generator}, {"discriminator", losses.discriminator}});
  });
  log.finish(result);
  if (options.trace_steps > 0) result.trace = dist::trace_json(training.wrapper());
  note_scaler(fabric, {&training.for_generator, &training.for_discriminator}, result);
  const auto region = fabric.autocast();
  judge(net, judge_net, test, options, result);
  if (!options.picture.empty() && group->rank() == 0)
    write_png(options.picture, sheet_of_digits(net, options, test.images.options()), 10);
  return ended(std::move(result), *group, net->parameters(), log);
}

std::string in_words(const TrainResult& result) {
  return fmt::format(
      "discriminator right on {:.0f} %, {:.0f} % of the made digits named with confidence, {:.0f} % as asked",
      100 * result.metrics.at("discriminator accuracy"), 100 * result.metrics.at("named with confidence"),
      100 * result.metrics.at("named as asked"));
}

const AddRecipe add(
    {.name = "gan",
     .about = "a generator of digits and a discriminator, two optimizers, feature matching, a frozen feature net",
     .forms = {{.name = "expect",
                .about = "one wrapper; each backward says what it is to reach: ddp.expect(optimizer)"},
               {.name = "toggle", .about = "one wrapper; fabric.toggle_optimizer() round each optimizer's turn"},
               {.name = "failing",
                .about = "one wrapper, and detach() keeps the discriminator's backward out of the generator",
                .verdict = {"unused_parameters", "detached"},
                .fault = "UNU-12"},
               {.name = "find-unused",
                .about = "one wrapper with find_unused_parameters: unused per backward, nothing over the step",
                .fault = "OK-07"},
               {.name = "two-forwards",
                .about = "one wrapper, no detach(): the images are made twice, first under NoGradGuard",
                .verdict = {"unused_parameters", "no_grad"},
                .fault = "UNU-13"},
               {.name = "two-wrappers",
                .about = "generator and discriminator each in a wrapper of its own",
                .fault = "OK-09"},
               {.name = "no-detach",
                .about = "one wrapper, no detach(): the discriminator's backward goes through the generator as well",
                .fault = "OK-08"}},
     .defaults = {.epochs = 30, .global_batch = 64, .lr = 2e-3},
     .makes_pictures = true,
     .train = &train_gan,
     .metrics_in_words = &in_words});

}  // namespace
}  // namespace brigade::lab::gan
