// A language model of letters: gradient accumulation with no_backward_sync, blocks that are run
// again in backward instead of being kept, mixed precision, and a checkpoint in the middle of an
// epoch from which training goes on bit for bit.
#include <brigade/lab/recipes/charlm.h>

#include <brigade/autograd/functional.h>
#include <brigade/data/data_loader.h>
#include <brigade/dist/ddp/trace.h>
#include <brigade/dist/fabric/fabric.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/data_path.h>
#include <brigade/lab/recipes/step_log.h>
#include <brigade/lab/recipes/training.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

#include <numbers>

namespace brigade::lab::charlm {
namespace {

// Windows of a text, by the letter at which they begin: the network reads a window, and is to say at each place which
// letter comes next.
class Windows : public data::Dataset<> {
 public:
  Windows(const std::vector<int64_t>& text, int64_t block)
      : text_(tensor(text, {static_cast<int64_t>(text.size())})), block_(block) {}

  int64_t size() const override { return text_.size(0) - block_; }
  data::Example get(int64_t begin) const override {
    return {text_.narrow(0, begin, block_), text_.narrow(0, begin + 1, block_)};
  }
  // How many do not overlap, wherever within a block the first one begins.
  int64_t apart() const { return (size() - 1) / block_; }

 private:
  Tensor text_;
  int64_t block_;
};

// Where the windows of an epoch begin, as many as fill whole batches. Each epoch starts at another letter of the first
// block, so that windows are not cut at the same places each time.
class Begins : public data::Sampler {
 public:
  Begins(const Windows& windows, int64_t block, const TrainOptions& options, bool shuffle)
      : windows_(windows.apart()),
        used_(windows_ / options.global_batch * options.global_batch),
        block_(block),
        seed_(options.seed),
        shuffle_(shuffle) {}

  std::vector<int64_t> indices() const override {
    std::vector<int64_t> begins = data::SequentialSampler(windows_).indices();
    int64_t first = 0;
    if (shuffle_) {
      begins = data::permutation(windows_, seed_ + epoch_);
      first = static_cast<int64_t>(epoch_) * 17 % block_;
    }
    begins.resize(static_cast<size_t>(used_));
    for (int64_t& begin : begins)
      begin = first + begin * block_;
    return begins;
  }
  int64_t size() const noexcept override { return used_; }
  void set_epoch(uint64_t epoch) noexcept override { epoch_ = epoch; }

 private:
  int64_t windows_, used_, block_;
  uint64_t seed_, epoch_ = 0;
  bool shuffle_;
};

// Logits [windows, block, letters] against the letters that come next.
Tensor loss_of(const Tensor& logits, const Tensor& next, Reduction reduction = Reduction::Mean) {
  return cross_entropy(logits.flatten(0, 1), next.flatten(), reduction);
}

class Training {
 public:
  Training(const dist::ProcessGroupPtr& group, const TrainOptions& options, const CharlmSettings& settings);
  TrainResult run();

 private:
  Tensor step(const data::Example& batch);
  double bits_per_character();
  std::string sample();

  const TrainOptions& options_;
  const CharlmSettings& settings_;
  dist::Fabric fabric_;
  Text text_;
  dist::FabricDataLoader<data::Example, data::Example> loader_;
  nn::GPT net_;
  optim::AdamW adamw_;
  dist::FabricModule<nn::GPT> model_;
  dist::FabricOptimizer optimizer_;
  int64_t random_offset_ = 0;  // of this rank's stream of random numbers
};

dist::FabricDataLoader<data::Example, data::Example> load_windows(dist::Fabric& fabric, const Text& text,
                                                                  const TrainOptions& options,
                                                                  const CharlmSettings& settings) {
  const auto windows = std::make_shared<Windows>(text.train, settings.block_size);
  const int64_t parts = fabric.world_size() * settings.micro_batches;
  if (options.global_batch % parts != 0 || options.global_batch > windows->apart())
    throw ValueError(
        "charlm: expected a global batch that {} ranks with {} micro-batches each can share evenly, of at most {} "
        "windows, got {}",
        fabric.world_size(), settings.micro_batches, windows->apart(), options.global_batch);
  return fabric.setup_dataloaders(data::DataLoader(
      windows, {.batch_size = batch_of_a_rank(options, *fabric.group(), windows->apart()),
                .sampler = std::make_shared<Begins>(*windows, settings.block_size, options, settings.shuffle)}));
}

nn::GPT make_model(const Text& text, const CharlmSettings& settings, const TrainOptions& options,
                   const dist::Fabric& fabric) {
  dist::Fabric::seed_everything(options.seed);
  nn::GPT model({.vocab_size = static_cast<int64_t>(text.alphabet.size()),
                 .block_size = settings.block_size,
                 .n_layer = settings.n_layer,
                 .n_head = settings.n_head,
                 .n_embd = settings.n_embd,
                 .dropout = settings.dropout,
                 .checkpoint_blocks = settings.checkpoint_blocks});
  model->to(fabric.precision().parameters);
  if (settings.start) settings.start(model);
  return model;
}

Training::Training(const dist::ProcessGroupPtr& group, const TrainOptions& options, const CharlmSettings& settings)
    : options_(options),
      settings_(settings),
      fabric_(fabric_options(options), group),
      text_(load_text(text_path())),
      loader_(load_windows(fabric_, text_, options, settings)),
      net_(make_model(text_, settings, options, fabric_)),
      adamw_(net_->parameters(), {.lr = options.lr, .weight_decay = 0.01}),
      model_(fabric_.setup_module(net_)),
      optimizer_(fabric_.setup_optimizers(adamw_)) {
  keep_trace(*model_.ddp(), options);
}

// Several small backwards, then one step. Until the last of them gradients add up on this rank
// alone (no_backward_sync): the ranks send each other one gradient per step, not one per micro-batch.
Tensor Training::step(const data::Example& batch) {
  const int64_t parts = settings_.micro_batches, size = batch.data.size(0) / parts;
  optimizer_.zero_grad();
  Tensor sum;
  for (int64_t part = 0; part < parts; ++part) {
    const auto local = fabric_.no_backward_sync(model_, part + 1 < parts);
    const Tensor letters = batch.data.narrow(0, part * size, size), next = batch.target.narrow(0, part * size, size);
    const Tensor loss = loss_of(model_(letters), next);
    // A mean over all windows of the step is the mean of the parts' means.
    fabric_.backward(loss / static_cast<double>(parts));
    const Tensor seen = loss.detach().to(kFloat64) / static_cast<double>(parts);
    sum = sum.defined() ? sum + seen : seen;
  }
  fabric_.clip_gradients(optimizer_, {.max_norm = 1, .error_if_nonfinite = false});
  optimizer_.step();
  return sum;
}

TrainResult Training::run() {
  const dist::ProcessGroupPtr& group = fabric_.group();
  const int64_t per_epoch = loader_->size(), steps = steps_of(options_, per_epoch);
  Progress progress(options_, fabric_.checkpoint());
  progress.checkpoint.module("model", *net_).optimizer("adamw", adamw_);
  progress.checkpoint.number("random_offset", random_offset_);
  add_loader(progress.checkpoint, *loader_);
  progress.resume(steps);
  adamw_.set_lr(0, options_.lr);
  // Dropout: other masks on each rank, from the same place in each rank's stream. Rank 0 has saved: its place is that of
  // every rank, since all draw equally many numbers.
  manual_seed(options_.seed + 1 + static_cast<uint64_t>(group->rank()));
  default_generator().set_offset(static_cast<uint64_t>(random_offset_));

  TrainResult result = begun(fabric_.device(), progress, per_epoch);
  StepLog log(group, options_, steps, progress.steps);
  train_on(loader_, progress, *group, steps, [&](const data::Example& batch) {
    log.begin();
    const Tensor loss = step(batch);
    log.end({{"loss", loss}});
    random_offset_ = static_cast<int64_t>(default_generator().offset());
  });
  log.finish(result);
  if (options_.trace_steps > 0) result.trace = dist::trace_json(*model_.ddp());
  result.metrics["bits per character"] = bits_per_character();
  result.sample = sample();
  return ended(std::move(result), *group, net_->parameters(), log);
}

// How many bits the network needs for a letter of the held-out text, on average: its loss in bits.
// The ranks share the windows.
double Training::bits_per_character() {
  const NoGradGuard no_grad;
  const auto region = fabric_.autocast();
  net_->eval();
  const Windows windows(text_.test, settings_.block_size);
  double nats = 0, letters = 0;
  for (int64_t number = fabric_.global_rank(); number < windows.apart();) {
    std::vector<data::Example> some;
    for (; number < windows.apart() && some.size() < 64; number += fabric_.world_size())
      some.push_back(windows.get(number * settings_.block_size));
    const data::Example batch = dist::on_device(data::default_collate(some), fabric_.device());
    nats += loss_of(net_(batch.data), batch.target, Reduction::Sum).to(kFloat64).item();
    letters += static_cast<double>(batch.target.numel());
  }
  net_->train();
  return fabric_.all_reduce(nats) / fabric_.all_reduce(letters) / std::numbers::ln2;
}

// Writes on from the first line of the held-out text, a letter at a time.
std::string Training::sample() {
  const NoGradGuard no_grad;
  net_->eval();
  RandomGenerator generator(options_.seed);
  std::vector<int64_t> written(text_.test.begin(), text_.test.begin() + settings_.block_size);
  for (int64_t i = 0; i < settings_.sample_length; ++i) {
    const std::vector<int64_t> last(written.end() - settings_.block_size, written.end());
    const Tensor logits = net_(tensor(last, {1, settings_.block_size}).to(fabric_.device())).select(1, -1).to(kFloat64);
    // Below 1: likely letters are made likelier.
    constexpr double kTemperature = 0.8;
    const std::vector<double> probability = softmax(logits.flatten() / kTemperature, 0).to_vector<double>();
    double left = rand({1}, kFloat64, &generator).item();
    size_t letter = 0;
    while (letter + 1 < probability.size() && left >= probability[letter])
      left -= probability[letter++];
    written.push_back(static_cast<int64_t>(letter));
  }
  net_->train();
  return text_.letters_of({written.begin() + settings_.block_size, written.end()});
}

std::string in_words(const TrainResult& result) {
  return fmt::format("held-out text {:.3f} bits per character", result.metrics.at("bits per character"));
}

const AddRecipe add({.name = "charlm",
                     .about = "a small GPT writes Paradise Lost, letter by letter",
                     .defaults = {.epochs = 5, .global_batch = 64, .lr = 3e-3, .save_every = 50},
                     .train = [](const auto& group, const auto& options) { return train_charlm(group, options); },
                     .metrics_in_words = &in_words});

}  // namespace
}  // namespace brigade::lab::charlm

namespace brigade::lab {

TrainResult train_charlm(const dist::ProcessGroupPtr& group, const TrainOptions& options,
                         const CharlmSettings& settings) {
  return charlm::Training(group, options, settings).run();
}

}  // namespace brigade::lab
