// The recipe `deep-supervision`: a U-Net finds the digit in a noisy image, with a loss at each of
// three scales, in the forms in which people write that loss under DDP.
#include <brigade/lab/recipes/deep_supervision/unet.h>
#include <brigade/lab/recipes/recipe.h>

#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/trace.h>
#include <brigade/dist/fabric/fabric.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/png.h>
#include <brigade/lab/recipes/step_log.h>
#include <brigade/lab/recipes/training.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

#include <functional>

namespace brigade::lab::deep_supervision {
namespace {

// What each scale counts in the loss, the full size first.
const std::vector<double> kWeights{1, 0.5, 0.25};
constexpr double kNoise = 0.4;
constexpr double kForeground = 0.4;  // grey values above are the digit

struct Scene {
  Tensor images;  // [n, 1, 16, 16]: the digit, twice as large, under noise
  Tensor masks;   // [n, 1, 16, 16]: 1 where the digit is
};

Scene scene_of(const Tensor& digits, const Tensor& noise) {
  const Tensor clean = interpolate(digits, {.scale_factor = {{2, 2}}, .mode = InterpolateMode::Bilinear});
  return {clean + noise * kNoise, gt(clean, kForeground).to(digits.dtype())};
}

// Of one scale: the mask is made as small as the output.
Tensor loss_at(const Tensor& output, const Tensor& masks) {
  const Tensor small = interpolate(masks, {.size = Shape{output.size(2), output.size(3)}});
  return binary_cross_entropy_with_logits(output, small.to(output.dtype()));
}

// How much of the digit and of what was found they have in common (intersection over union).
double overlap(SmallUNetImpl& net, const Scene& scene) {
  const NoGradGuard no_grad;
  const Tensor found = gt(net.forward(scene.images).front(), 0.0);
  const Tensor wanted = gt(scene.masks, 0.5);
  const double both = logical_and(found, wanted).to(kFloat64).sum().item();
  return both / logical_or(found, wanted).to(kFloat64).sum().item();
}

// Ten images, the masks that were wanted, and those that were found.
Tensor sheet_of(SmallUNetImpl& net, const Scene& scene) {
  const NoGradGuard no_grad;
  const Tensor images = scene.images.narrow(0, 0, 10);
  return cat({images, scene.masks.narrow(0, 0, 10), sigmoid(net.forward(images).front())});
}

// The backwards of a step, by the form.
using Backward = std::function<Tensor(dist::Fabric& fabric, const std::vector<Tensor>& outputs, const Tensor& masks)>;

Tensor all_scales(dist::Fabric& fabric, const std::vector<Tensor>& outputs, const Tensor& masks,
                  const std::vector<double>& weights) {
  Tensor loss = weights[0] * loss_at(outputs[0], masks);
  for (size_t i = 1; i < outputs.size(); ++i)
    loss = loss + weights[i] * loss_at(outputs[i], masks);
  fabric.backward(loss);
  return loss;
}

// The coarsest output is made, and forgotten here.
Tensor without_the_coarse(dist::Fabric& fabric, const std::vector<Tensor>& outputs, const Tensor& masks) {
  const Tensor loss = kWeights[0] * loss_at(outputs[0], masks) + kWeights[1] * loss_at(outputs[1], masks);
  fabric.backward(loss);
  return loss;
}

// The popular advice for the error that this gives: let each output take part by a backward of its
// own. In strict mode it is the same error twice over. Where unused parameters are allowed both
// backwards are averaged, and the optimizer makes the sum of an output small, which nobody wants.
Tensor with_a_backward_for_the_coarse(dist::Fabric& fabric, const std::vector<Tensor>& outputs, const Tensor& masks) {
  fabric.backward(outputs[2].sum(), {.retain_graph = true});
  return without_the_coarse(fabric, outputs, masks);
}

// One training with a module that is a U-Net.
template <nn::Holder Net>
TrainResult train(const dist::ProcessGroupPtr& group, const TrainOptions& options, Net net, bool find_unused,
                  const Backward& backward) {
  dist::Fabric fabric(
      fabric_options(options, [&](dist::DDPOptions& ddp) { ddp.find_unused_parameters |= find_unused; }), group);
  const Digits digits = digits_on(fabric.device(), fabric.precision());
  auto loader = load_in_batches(fabric, digits.train, options);
  const int64_t steps = steps_of(options, loader->size());
  optim::Adam adam(net->parameters(), {.lr = options.lr});
  auto [model, optimizer] = fabric.setup(net, adam);
  keep_trace(*model.ddp(), options);

  Progress progress(options, fabric.checkpoint());
  progress.checkpoint.module("model", *net).optimizer("adam", adam);
  add_loader(progress.checkpoint, *loader);
  progress.resume(steps);

  TrainResult result = begun(fabric.device(), progress, loader->size());
  StepLog log(group, options, steps, progress.steps);
  train_on(loader, progress, *group, steps, [&, &model = model, &optimizer = optimizer](const data::Example& batch) {
    const Tensor noise = noise_of_step(*group, options, progress.steps, {1, 16, 16}, batch.data.options());
    const Scene scene = scene_of(batch.data, noise);
    log.begin();
    optimizer.zero_grad();
    const Tensor loss = backward(fabric, model(scene.images), scene.masks);
    optimizer.step();
    log.end({{"loss", loss}});
  });
  log.finish(result);
  if (options.trace_steps > 0) result.trace = dist::trace_json(*model.ddp());

  RandomGenerator random(options.seed);
  const Tensor& unseen = digits.test.images;
  const Scene test = scene_of(unseen, randn({unseen.size(0), 1, 16, 16}, unseen.dtype(), &random).to(fabric.device()));
  note_scaler(fabric, {&adam}, result);
  const auto region = fabric.autocast();
  result.metrics["iou"] = overlap(*net, test);
  if (!options.picture.empty() && group->rank() == 0) write_png(options.picture, sheet_of(*net, test), 10, 6);
  return ended(std::move(result), *group, net->parameters(), log);
}

TrainResult train_deep_supervision(const dist::ProcessGroupPtr& group, const TrainOptions& options) {
  const std::string form = find_form(find_recipe("deep-supervision"), options.form).name;
  manual_seed(options.seed);
  if (form == "weights-in-a-buffer") {
    WeightedUNet net(kWeights, false);
    return train(group, options, net, false,
                 [net](dist::Fabric& fabric, const std::vector<Tensor>& outputs, const Tensor& masks) {
                   std::vector<Tensor> losses;
                   for (const Tensor& output : outputs)
                     losses.push_back(loss_at(output, masks));
                   Tensor loss = (stack(losses) * net->weights).sum();
                   fabric.backward(loss);
                   return loss;
                 });
  }
  if (form == "weights-in-a-parameter") {
    WeightedUNet net(kWeights, true);
    return train(group, options, net, false,
                 [net](dist::Fabric& fabric, const std::vector<Tensor>& outputs, const Tensor& masks) {
                   // Numbers, so that they are not trained: and the wrapper waits for their gradient.
                   const std::vector<double> weights = net->weights.to_vector<double>();
                   return all_scales(fabric, outputs, masks, weights);
                 });
  }
  SmallUNet net;
  if (form == "left-out") return train(group, options, net, false, &without_the_coarse);
  if (form == "extra-backward") return train(group, options, net, false, &with_a_backward_for_the_coarse);
  if (form == "extra-backward-find-unused") return train(group, options, net, true, &with_a_backward_for_the_coarse);
  return train(group, options, net, false,
               [](dist::Fabric& fabric, const std::vector<Tensor>& outputs, const Tensor& masks) {
                 return all_scales(fabric, outputs, masks, kWeights);
               });
}

std::string in_words(const TrainResult& result) {
  return fmt::format("intersection over union {:.3f}", result.metrics.at("iou"));
}

const AddRecipe add(
    {.name = "deep-supervision",
     .about = "a small U-Net finds the digit in a noisy image, with a loss at each of three scales",
     .forms = {{.name = "all-scales", .about = "every output is in the loss"},
               {.name = "left-out",
                .about = "the coarsest output is made, and left out of the loss",
                .verdict = {"unused_parameters", "output_dropped"},
                .fault = "UNU-04"},
               {.name = "weights-in-a-buffer",
                .about = "every output is in the loss; what each counts is a buffer of the module",
                .fault = "OK-16"},
               {.name = "weights-in-a-parameter",
                .about = "the same, and what each counts is a parameter that is read as numbers",
                .verdict = {"unused_parameters", "read_as_number"},
                .fault = "UNU-11"},
               {.name = "extra-backward",
                .about = "left out of the loss, and given a backward of its own: output.sum().backward(retain_graph)",
                .verdict = {"unused_parameters", "output_dropped"},
                .fault = "TWI-02"},
               {.name = "extra-backward-find-unused",
                .about = "the same with find_unused_parameters: averaged right here, and trains towards a small sum",
                .fault = "TWI-03"}},
     .defaults = {.epochs = 10, .global_batch = 32, .lr = 3e-3},
     .makes_pictures = true,
     .train = &train_deep_supervision,
     .metrics_in_words = &in_words});

}  // namespace
}  // namespace brigade::lab::deep_supervision
