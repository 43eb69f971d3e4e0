// A language model of letters under DDP: gradient accumulation with no_sync, blocks that are run
// again in backward instead of being kept, mixed precision, and a checkpoint in the middle of an
// epoch from which training goes on bit for bit.
#include <brigade/lab/recipes/charlm.h>

#include <brigade/amp/grad_scaler.h>
#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/ddp/sampler.h>
#include <brigade/dist/reducer/trace.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/recipes/progress.h>
#include <brigade/lab/recipes/step_log.h>
#include <brigade/lab/recipes/strategy_options.h>
#include <brigade/lab/recipes/training.h>
#include <brigade/lab/text.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

#include <numbers>
#include <optional>

namespace brigade::lab {

namespace {

// Windows of a text: the network reads `letters`, and is to say at each place which comes next.
struct Windows {
  Tensor letters, next;  // int64 [windows, block]
};

Windows windows_at(const std::vector<int64_t>& text, const std::vector<int64_t>& begins, int64_t block, Device device) {
  std::vector<int64_t> letters, next;
  for (const int64_t begin : begins) {
    const auto first = text.begin() + begin;
    letters.insert(letters.end(), first, first + block);
    next.insert(next.end(), first + 1, first + block + 1);
  }
  const Shape sizes{static_cast<int64_t>(begins.size()), block};
  return {tensor(letters, sizes).to(device), tensor(next, sizes).to(device)};
}

// How many whole windows of a text do not overlap, wherever within a block the first one begins.
int64_t count_of_windows(const std::vector<int64_t>& text, int64_t block) {
  return (static_cast<int64_t>(text.size()) - block - 1) / block;
}

// Part number `part` of a list that is cut into parts of this size.
std::vector<int64_t> some_of(const std::vector<int64_t>& all, int64_t part, int64_t size) {
  const auto first = all.begin() + part * size;
  return {first, first + size};
}

// Logits [windows, block, letters] against the letters that come next.
Tensor loss_of(const Tensor& logits, const Tensor& next, Reduction reduction = Reduction::Mean) {
  return cross_entropy(logits.flatten(0, 1), next.flatten(), reduction);
}

class Training {
 public:
  Training(dist::ProcessGroupPtr group, const TrainOptions& options, const CharlmSettings& settings);
  TrainResult run();

 private:
  Tensor step(const std::vector<int64_t>& begins);
  std::vector<int64_t> begins_of(int64_t epoch);
  double bits_per_character();
  std::string sample();

  dist::ProcessGroupPtr group_;
  const TrainOptions& options_;
  const CharlmSettings& settings_;
  const amp::Precision& precision_;
  Device device_;
  Text text_;
  int64_t batch_;  // windows of this rank per step
  int64_t steps_per_epoch_, steps_;
  nn::GPT model_;
  optim::AdamW optimizer_;
  amp::GradScaler scaler_;
  Progress progress_;
  int64_t random_offset_ = 0;  // of this rank's stream of random numbers
  dist::DistributedDataParallel<nn::GPT> ddp_;
};

nn::GPT make_model(const Text& text, const CharlmSettings& settings, const TrainOptions& options, Device device) {
  manual_seed(options.seed);
  nn::GPT model({.vocab_size = static_cast<int64_t>(text.alphabet.size()),
                 .block_size = settings.block_size,
                 .n_layer = settings.n_layer,
                 .n_head = settings.n_head,
                 .n_embd = settings.n_embd,
                 .dropout = settings.dropout,
                 .checkpoint_blocks = settings.checkpoint_blocks});
  model->to(amp::find_precision(options.precision).parameters);
  if (settings.start) settings.start(model);
  model->to(device);
  return model;
}

Training::Training(dist::ProcessGroupPtr group, const TrainOptions& options, const CharlmSettings& settings)
    : group_(std::move(group)),
      options_(options),
      settings_(settings),
      precision_(amp::find_precision(options.precision)),
      device_(ready_device(options, *group_)),
      text_(load_text(text_path())),
      batch_(options.global_batch / group_->size()),
      steps_per_epoch_(count_of_windows(text_.train, settings.block_size) / options.global_batch),
      steps_(steps_per_epoch_ * options.epochs),
      model_(make_model(text_, settings, options, device_)),
      optimizer_(model_->parameters(), {.lr = options.lr, .weight_decay = 0.01}),
      scaler_({.enabled = precision_.scales, .device = device_.type}),
      progress_(options),
      ddp_(model_, group_, strategy_options(options.strategy, options.bucket_mb)) {
  if (options.steps > 0) steps_ = std::min(steps_, options.steps);
  if (options.global_batch % (group_->size() * settings.micro_batches) != 0 || steps_ < 1)
    throw ValueError(
        "charlm: expected a global batch that {} ranks with {} micro-batches each can share evenly, of at most {} "
        "windows, got {}",
        group_->size(), settings.micro_batches, count_of_windows(text_.train, settings.block_size),
        options.global_batch);
  // Dropout: other masks on each rank, from the same place in each rank's stream.
  manual_seed(options.seed + 1 + static_cast<uint64_t>(group_->rank()));
  progress_.checkpoint.module("model", *model_).optimizer("adamw", optimizer_);
  progress_.checkpoint.number("random_offset", random_offset_);
  add_scaler(progress_.checkpoint, scaler_);
  if (options.trace_steps > 0) ddp_.reducer().timeline().keep(static_cast<size_t>(options.trace_steps));
}

// Where this rank's windows of an epoch begin. Each epoch starts at another letter of the first
// block, so that windows are not cut at the same places each time.
std::vector<int64_t> Training::begins_of(int64_t epoch) {
  dist::DistributedSampler sampler(count_of_windows(text_.train, settings_.block_size), group_->rank(), group_->size(),
                                   {.shuffle = settings_.shuffle, .seed = options_.seed, .drop_last = true});
  sampler.set_epoch(static_cast<uint64_t>(epoch));
  const int64_t first = settings_.shuffle ? epoch * 17 % settings_.block_size : 0;
  std::vector<int64_t> begins = sampler.indices();
  for (int64_t& begin : begins)
    begin = first + begin * settings_.block_size;
  return begins;
}

// Several small backwards, then one step. Until the last of them gradients add up on this rank
// alone (no_sync): the ranks send each other one gradient per step, not one per micro-batch.
Tensor Training::step(const std::vector<int64_t>& begins) {
  const int64_t parts = settings_.micro_batches, size = batch_ / parts;
  optimizer_.zero_grad();
  Tensor sum;
  for (int64_t part = 0; part < parts; ++part) {
    std::optional<dist::DistributedDataParallelBase::NoSync> local;
    if (part + 1 < parts) local.emplace(ddp_.no_sync());
    const Windows batch = windows_at(text_.train, some_of(begins, part, size), settings_.block_size, device_);
    const Tensor loss = under(precision_, device_, [&] { return loss_of(ddp_(batch.letters), batch.next); });
    // A mean over all windows of the step is the mean of the parts' means.
    scaler_.scale(loss / static_cast<double>(parts)).backward();
    const Tensor seen = loss.detach().to(kFloat64) / static_cast<double>(parts);
    sum = sum.defined() ? sum + seen : seen;
  }
  scaler_.unscale_(optimizer_);
  optim::clip_grad_norm_(model_->parameters(), 1.0);
  scaler_.step(optimizer_);
  scaler_.update();
  return sum;
}

TrainResult Training::run() {
  progress_.resume(steps_);
  if (!options_.resume.empty()) {
    optimizer_.set_lr(0, options_.lr);
    // Rank 0 has saved: its place is that of every rank, since all draw equally many numbers. The
    // seeds are each rank's own.
    default_generator().set_offset(static_cast<uint64_t>(random_offset_));
  }
  TrainResult result = begun(device_, progress_, steps_per_epoch_);
  StepLog log(group_, options_, steps_, progress_.steps);
  std::vector<int64_t> begins = begins_of(progress_.steps / steps_per_epoch_);
  while (progress_.steps < steps_) {
    const int64_t in_epoch = progress_.steps % steps_per_epoch_;
    if (in_epoch == 0) begins = begins_of(progress_.steps / steps_per_epoch_);
    log.begin();
    const Tensor loss = step(some_of(begins, in_epoch, batch_));
    log.end({{"loss", loss}});
    ++progress_.steps;
    random_offset_ = static_cast<int64_t>(default_generator().offset());
    const bool epoch_ends = progress_.steps % steps_per_epoch_ == 0;
    progress_.save(*group_, epoch_ends ? steps_per_epoch_ : settings_.save_every, steps_);
  }
  log.finish(result);
  if (options_.trace_steps > 0) result.trace = dist::trace_json(*group_, ddp_.reducer());
  result.metrics["bits per character"] = bits_per_character();
  result.sample = sample();
  return ended(std::move(result), *group_, model_->parameters(), log);
}

// How many bits the network needs for a letter of the held-out text, on average: its loss in bits.
// The ranks share the windows.
double Training::bits_per_character() {
  const NoGradGuard no_grad;
  model_->eval();
  const int64_t windows = count_of_windows(text_.test, settings_.block_size);
  double nats = 0, letters = 0;
  for (int64_t first = group_->rank(); first < windows;) {
    std::vector<int64_t> begins;
    for (; first < windows && begins.size() < 64; first += group_->size())
      begins.push_back(first * settings_.block_size);
    const Windows batch = windows_at(text_.test, begins, settings_.block_size, device_);
    const Tensor loss =
        under(precision_, device_, [&] { return loss_of(model_(batch.letters), batch.next, Reduction::Sum); });
    nats += loss.to(kFloat64).item();
    letters += static_cast<double>(batch.next.numel());
  }
  model_->train();
  nats = mean_over_ranks(*group_, nats, "loss on the held-out text");
  letters = mean_over_ranks(*group_, letters, "letters of the held-out text");
  return nats / letters / std::numbers::ln2;
}

// Writes on from the first line of the held-out text, a letter at a time.
std::string Training::sample() {
  const NoGradGuard no_grad;
  model_->eval();
  Generator generator(options_.seed);
  std::vector<int64_t> written(text_.test.begin(), text_.test.begin() + settings_.block_size);
  for (int64_t i = 0; i < settings_.sample_length; ++i) {
    const std::vector<int64_t> last(written.end() - settings_.block_size, written.end());
    const Tensor logits = model_(tensor(last, {1, settings_.block_size}).to(device_)).select(1, -1).to(kFloat64);
    // Below 1: likely letters are made likelier.
    constexpr double kTemperature = 0.8;
    const std::vector<double> probability = softmax(logits.flatten() / kTemperature, 0).to_vector<double>();
    double left = rand({1}, kFloat64, &generator).item();
    size_t letter = 0;
    while (letter + 1 < probability.size() && left >= probability[letter])
      left -= probability[letter++];
    written.push_back(static_cast<int64_t>(letter));
  }
  model_->train();
  return text_.letters_of({written.begin() + settings_.block_size, written.end()});
}

std::string in_words(const TrainResult& result) {
  return fmt::format("held-out text {:.3f} bits per character", result.metrics.at("bits per character"));
}

const AddRecipe add({.name = "charlm",
                     .about = "a small GPT writes Paradise Lost, letter by letter",
                     .defaults = {.epochs = 5, .global_batch = 64, .lr = 3e-3},
                     .train = [](const auto& group, const auto& options) { return train_charlm(group, options); },
                     .metrics_in_words = &in_words});

}  // namespace

TrainResult train_charlm(const dist::ProcessGroupPtr& group, const TrainOptions& options,
                         const CharlmSettings& settings) {
  return Training(group, options, settings).run();
}

}  // namespace brigade::lab
