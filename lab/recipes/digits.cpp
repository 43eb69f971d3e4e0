// The network, its training, its accuracy, and whether all ranks end with the same parameters.
#include <brigade/lab/recipes/digits.h>
#include <brigade/lab/recipes/recipe.h>

#include <brigade/amp/autocast.h>
#include <brigade/amp/grad_scaler.h>
#include <brigade/autograd/functional.h>
#include <brigade/core/device_runtime.h>
#include <brigade/data/data_loader.h>
#include <brigade/data/tensor_dataset.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/ddp/sampler.h>
#include <brigade/dist/reducer/trace.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/digits.h>
#include <brigade/lab/precision.h>
#include <brigade/lab/progress_bar.h>
#include <brigade/lab/rank_job.h>
#include <brigade/lab/strategy.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

#include <chrono>
#include <cstring>

namespace brigade::lab {

DigitsNetImpl::DigitsNetImpl() {
  conv1 = register_module("conv1", nn::Conv2d(1, 16, 3, {.padding = 1}));
  conv2 = register_module("conv2", nn::Conv2d(16, 32, 3, {.padding = 1}));
  fc1 = register_module("fc1", nn::Linear(32 * 4 * 4, 64));
  fc2 = register_module("fc2", nn::Linear(64, 10));
}

Tensor DigitsNetImpl::forward(const Tensor& images) {
  // Mean and deviation of the grey values of the training examples.
  const Tensor small = avg_pool2d(gelu(conv1((images - 0.3053) / 0.3760)), 2);
  const Tensor features = gelu(conv2(small)).flatten(1);
  return fc2(gelu(fc1(features)));
}

namespace {

// Forward and loss under the autocast of `precision`, if it has one.
template <class F>
auto under(const Precision& precision, Device device, F&& body) {
  const amp::autocast region(device.type, precision.autocast, precision.autocast.has_value());
  return body();
}

Examples on(Device device, const Examples& examples) {
  return {examples.images.to(device), examples.labels.to(device)};
}

double accuracy_of(DigitsNet& net, const Examples& examples, const Precision& precision) {
  const NoGradGuard no_grad;
  const Tensor guessed = under(precision, examples.images.device(), [&] { return argmax(net(examples.images), 1); });
  return eq(guessed, examples.labels).to(kFloat64).mean().item();
}

// A file may say anything.
std::string dtype_in_words(int64_t number) {
  const bool is_known = number >= 0 && number <= static_cast<int64_t>(DType::Bool);
  return is_known ? name(static_cast<DType>(number)) : fmt::format("dtype number {}, which is none", number);
}

// What training goes on from, bit for bit on as many ranks.
struct Progress {
  int64_t epochs = 0;  // that are finished
  int64_t seed, global_batch;
  int64_t computed_in;  // the dtype of forward: parameters of another are refused by themselves

  explicit Progress(const TrainOptions& options)
      : seed(static_cast<int64_t>(options.seed)), global_batch(options.global_batch) {
    const Precision& precision = find_precision(options.precision);
    computed_in = static_cast<int64_t>(precision.autocast.value_or(precision.parameters));
  }
  // Throws ValueError when the file belongs to another job.
  void check(const TrainOptions& options) const {
    const Progress now(options);
    const auto must_be = [&](const char* option, int64_t saved, int64_t given) {
      if (saved == given) return;
      throw ValueError("{} was written with {} {}, and this is {}; a training goes on as it began", options.resume,
                       option, saved, given);
    };
    must_be("--seed", seed, now.seed);
    must_be("--batch", global_batch, now.global_batch);
    if (computed_in != now.computed_in) {
      throw ValueError("{} was written by a training in {}, and --precision {} computes in {}", options.resume,
                       dtype_in_words(computed_in), options.precision, dtype_in_words(now.computed_in));
    }
    if (epochs >= options.epochs) {
      throw ValueError("{} was written after {} epochs, and --epochs is {}: there is nothing left to do",
                       options.resume, epochs, options.epochs);
    }
  }
};

// Whether all ranks hold the same bits: one all-reduce of the smallest and the largest of each byte
// would do; comparing with rank 0 names it.
bool same_on_all_ranks(dist::ProcessGroup& group, const std::vector<Tensor>& tensors) {
  int64_t equal = 1;
  for (const Tensor& tensor : tensors) {
    const Tensor theirs = tensor.detach().clone();
    group.broadcast(theirs, {.root = 0, .description = "parameters of rank 0, to compare"})->wait();
    if (std::memcmp(theirs.cpu().raw_data(), tensor.cpu().raw_data(), tensor.nbytes()) != 0) equal = 0;
  }
  const Tensor verdict = brigade::tensor<int64_t>({equal});
  group.all_reduce(verdict, {.op = dist::ReduceOp::Min, .description = "are the parameters equal"})->wait();
  return verdict.item<int64_t>() == 1;
}

TrainResult train_digits(const dist::ProcessGroupPtr& group, const TrainOptions& options) {
  using Clock = std::chrono::steady_clock;
  const Precision& precision = find_precision(options.precision);
  const dist::DDPOptions ddp_options = strategy_options(options.strategy);
  if (options.global_batch < group->size() || options.global_batch % group->size() != 0) {
    throw ValueError("the global batch of {} cannot be shared evenly by {} ranks", options.global_batch, group->size());
  }
  if (options.epochs < 1) throw ValueError("expected at least 1 epoch, got {}", options.epochs);
  const Device device = choose_device(options.device, local_rank(*group));
  set_current_device(device);
  Digits digits = load_digits(digits_path(), precision.parameters);
  if (options.global_batch > digits.train.labels.numel()) {
    throw ValueError("the global batch of {} is larger than the {} examples to train on", options.global_batch,
                     digits.train.labels.numel());
  }
  digits = {on(device, digits.train), on(device, digits.test)};

  manual_seed(options.seed);
  DigitsNet net;
  net->to(precision.parameters);
  net->to(device);
  optim::SGD optimizer(net->parameters(), {.lr = options.lr, .momentum = 0.9});
  amp::GradScaler scaler({.enabled = precision.scales, .device = device.type});
  Progress progress(options);
  optim::Checkpoint checkpoint;
  checkpoint.module("model", *net).optimizer("sgd", optimizer).number("epochs", progress.epochs);
  checkpoint.number("seed", progress.seed).number("batch", progress.global_batch);
  checkpoint.number("computed_in", progress.computed_in);
  if (precision.scales) {
    checkpoint.part(
        "scaler", [&] { return scaler.state_dict(); }, [&](const auto& state) { scaler.load_state_dict(state); });
  }
  if (!options.resume.empty()) {
    checkpoint.load(options.resume);
    progress.check(options);
    for (size_t g = 0; g < optimizer.groups(); ++g)
      optimizer.set_lr(g, options.lr);
  }
  dist::DistributedDataParallel ddp(net, group, ddp_options);
  if (options.trace_steps > 0) ddp.reducer().timeline().keep(static_cast<size_t>(options.trace_steps));
  const auto examples = std::make_shared<data::TensorDataset>(digits.train.images, digits.train.labels);
  const auto sampler = std::make_shared<dist::DistributedSampler>(
      examples->size(), group->rank(), group->size(),
      dist::DistributedSamplerOptions{.seed = options.seed, .drop_last = true});
  data::DataLoader loader(examples, {.batch_size = options.global_batch / group->size(),
                                     .seed = options.seed,
                                     .sampler = sampler,
                                     .drop_last = true});

  ProgressBar bar("training", options.epochs * loader.size(), options.progress && group->rank() == 0);
  TrainResult result;
  result.device = to_string(device);
  const auto begin = Clock::now();
  result.from_epoch = static_cast<int>(progress.epochs);
  for (int epoch = result.from_epoch; epoch < options.epochs; ++epoch) {
    loader.set_epoch(static_cast<uint64_t>(epoch));
    auto step_begin = Clock::now();
    for (const data::Example& batch : loader) {
      optimizer.zero_grad();
      const Tensor loss = under(precision, device, [&] { return cross_entropy(ddp(batch.data), batch.target); });
      scaler.scale(loss).backward();
      scaler.step(optimizer);
      scaler.update();
      const Tensor mean = loss.detach().to(kFloat64).cpu().clone();
      group->all_reduce(mean, {.op = dist::ReduceOp::Avg, .description = "loss, for the report"})->wait();
      result.loss.push_back(mean.item());
      result.step_ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - step_begin).count());
      bar.update(result.from_epoch * loader.size() + static_cast<int64_t>(result.loss.size()),
                 fmt::format("loss {:.4f}", result.loss.back()));
      step_begin = Clock::now();
    }
    progress.epochs = epoch + 1;
    if (!options.checkpoint.empty() && group->rank() == 0) checkpoint.save(options.checkpoint);
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (options.trace_steps > 0) result.trace = dist::trace_json(*group, ddp.reducer());
  result.metrics["accuracy"] = accuracy_of(net, digits.test, precision);
  if (precision.scales) {
    result.metrics["loss scale"] = scaler.get_scale();
    result.metrics["skipped steps"] = static_cast<double>(optimizer.steps_skipped());
  }
  result.parameters_equal = same_on_all_ranks(*group, net->parameters());
  return result;
}

const AddRecipe add({.name = "digits",
                     .train = &train_digits,
                     .trace = &trace_digits,
                     .metrics_in_words = [](const TrainResult& result) {
                       return fmt::format("held-out accuracy {:.2f} %", 100 * result.metrics.at("accuracy"));
                     }});

}  // namespace

}  // namespace brigade::lab
