// The network, its training, its accuracy, and whether all ranks end with the same parameters.
#include <brigade/lab/recipes/digits.h>

#include <brigade/amp/autocast.h>
#include <brigade/amp/grad_scaler.h>
#include <brigade/autograd/functional.h>
#include <brigade/data/data_loader.h>
#include <brigade/data/dataset.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/ddp/sampler.h>
#include <brigade/dist/ddp/trace.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/recipes/recipe.h>
#include <brigade/lab/recipes/step_log.h>
#include <brigade/lab/recipes/training.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

#include <algorithm>

namespace brigade::lab {

DigitsNetImpl::DigitsNetImpl() {
  conv1 = register_module("conv1", nn::Conv2d(1, 16, 3, {.padding = 1}));
  conv2 = register_module("conv2", nn::Conv2d(16, 32, 3, {.padding = 1}));
  fc1 = register_module("fc1", nn::Linear(32 * 4 * 4, 64));
  fc2 = register_module("fc2", nn::Linear(64, 10));
}

Tensor DigitsNetImpl::forward(const Tensor& images) { return fc2(features(images)); }

Tensor DigitsNetImpl::features(const Tensor& images) {
  // Mean and deviation of the grey values of the training examples.
  const Tensor small = avg_pool2d(gelu(conv1((images - 0.3053) / 0.3760)), 2);
  return gelu(fc1(gelu(conv2(small)).flatten(1)));
}

void train_classifier(DigitsNet& net, const Examples& examples, int epochs, uint64_t seed) {
  constexpr int64_t kBatch = 64;
  optim::SGD optimizer(net->parameters(), {.lr = 0.05, .momentum = 0.9});
  RandomGenerator order(seed);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const Tensor shuffled = randperm(examples.labels.numel(), &order).to(examples.labels.device());
    for (int64_t first = 0; first + kBatch <= shuffled.numel(); first += kBatch) {
      const Tensor chosen = shuffled.narrow(0, first, kBatch);
      optimizer.zero_grad();
      cross_entropy(net(index_select(examples.images, 0, chosen)), index_select(examples.labels, 0, chosen)).backward();
      optimizer.step();
    }
  }
  net->zero_grad();
}

namespace {

// As a program without a Fabric: its own sampler, loader, wrapper, autocast and scaler.
TrainResult train_digits(const dist::ProcessGroupPtr& group, const TrainOptions& options) {
  const amp::Precision& precision = amp::find_precision(options.precision);
  const Device device = ready_device(options, *group);
  const Digits digits = digits_on(device, precision);
  const auto dataset = std::make_shared<data::TensorDataset>(digits.train.images, digits.train.labels);
  const auto sampler = std::make_shared<dist::DistributedSampler>(
      dataset->size(), group->rank(), group->size(),
      dist::DistributedSamplerOptions{.seed = options.seed, .drop_last = true});
  data::DataLoader loader(
      dataset,
      {.batch_size = batch_of_a_rank(options, *group, dataset->size()), .sampler = sampler, .drop_last = true});
  const int64_t steps = steps_of(options, loader.size());

  manual_seed(options.seed);
  DigitsNet net;
  net->to(precision.parameters);
  net->to(device);
  optim::SGD optimizer(net->parameters(), {.lr = options.lr, .momentum = 0.9});
  amp::GradScaler scaler({.enabled = precision.scales, .device = device.type});
  Progress progress(options);
  progress.checkpoint.module("model", *net).optimizer("sgd", optimizer);
  add_scaler(progress.checkpoint, scaler);
  add_loader(progress.checkpoint, loader);
  progress.resume(steps);
  optimizer.set_lr(0, options.lr);
  dist::DistributedDataParallel ddp(net, group, strategy_options(options.strategy, options.bucket_mb));
  keep_trace(ddp, options);
  const auto autocast = [&] { return amp::autocast(device.type, precision.autocast, precision.autocast.has_value()); };

  TrainResult result = begun(device, progress, loader.size());
  StepLog log(group, options, steps, progress.steps);
  train_on(loader, progress, *group, steps, [&](const data::Example& batch) {
    log.begin();
    optimizer.zero_grad();
    Tensor loss;
    {
      const auto region = autocast();
      loss = cross_entropy(ddp(batch.data), batch.target);
    }
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
    log.end({{"loss", loss}});
  });
  log.finish(result);
  if (options.trace_steps > 0) result.trace = dist::trace_json(ddp);
  {
    const NoGradGuard no_grad;
    const auto region = autocast();
    result.metrics["accuracy"] = accuracy_of(net(digits.test.images), digits.test.labels);
  }
  if (precision.scales) {
    result.metrics["loss scale"] = scaler.get_scale();
    result.metrics["skipped steps"] = static_cast<double>(optimizer.steps_skipped());
  }
  return ended(std::move(result), *group, net->parameters(), log);
}

const AddRecipe add({.name = "digits",
                     .about = "a small convolutional network names handwritten digits",
                     .train = &train_digits,
                     .trace = &trace_digits,
                     .metrics_in_words = [](const TrainResult& result) {
                       return fmt::format("held-out accuracy {:.2f} %", 100 * result.metrics.at("accuracy"));
                     }});

}  // namespace

// --- Five training steps on random images, of which the timeline keeps the last two.

std::string trace_digits(const dist::ProcessGroupPtr& group, double bucket_mb) {
  manual_seed(1);
  DigitsNet net;
  dist::DDPOptions options;
  options.bucket_cap_mb = bucket_mb;
  options.first_bucket_mb = std::min(1.0, options.bucket_cap_mb);
  dist::DistributedDataParallel<DigitsNet> ddp(net, group, options);
  ddp.timeline().keep(2);
  optim::SGD optimizer(net->parameters(), {.lr = 0.05});
  RandomGenerator generator(7 + static_cast<uint64_t>(group->rank()));
  for (int step = 0; step < 5; ++step) {
    const Tensor images = randn({32, 1, 8, 8}, kFloat32, &generator);
    const Tensor labels = randint(0, 10, {32}, {kInt64}, &generator);
    optimizer.zero_grad();
    cross_entropy(ddp(images), labels).backward();
    optimizer.step();
  }
  return dist::trace_json(ddp);
}

}  // namespace brigade::lab
