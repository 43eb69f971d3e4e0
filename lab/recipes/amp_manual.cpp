// The recipe `amp-manual`: an optimization loop written by hand in mixed precision, with three
// optimizers, three schedules and one loss scaler. What has to hold in such a loop:
//
// - The loss that backward starts from went through scaler.scale(): it says which scale the
//   gradients have. A plain loss.backward() leaves nothing to divide by.
// - The scale stays what it is until every optimizer has stepped: update() comes once, at the end of
//   the iteration. In between it may raise or lower the scale, and the gradients of the optimizers
//   that come later would be divided by another number than they were multiplied with.
// - A schedule that looks at the loss looks at the same number on all ranks, or their learning rates
//   part.
// - Gradients are cleared before they are made anew.
#include <brigade/amp/grad_scaler.h>
#include <brigade/autograd/functional.h>
#include <brigade/dist/reducer/trace.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/recipes/digits_batches.h>
#include <brigade/lab/recipes/progress.h>
#include <brigade/lab/recipes/step_log.h>
#include <brigade/lab/recipes/strategy_options.h>
#include <brigade/lab/recipes/training.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

#include <array>

namespace brigade::lab {

namespace {

// How the loop goes on. Each form but the first has one of the mistakes that people make.
struct AmpManualForm {
  bool scales_loss = true;        // false: a plain backward, past the scaler
  bool updates_once = true;       // false: scaler.update() after each of the optimizers
  bool averages_schedule = true;  // false: schedules step at each batch, by the rank's own loss
  bool clears_gradients = true;   // false: no zero_grad
};

AmpManualForm form_of(const std::string& name) {
  if (name == "plain-backward") return {.scales_loss = false};
  if (name == "update-per-optimizer") return {.updates_once = false};
  if (name == "local-schedule") return {.averages_schedule = false};
  if (name == "no-zero-grad") return {.clears_gradients = false};
  return {};
}

// Says which digit an image shows, and draws it again from what it has understood.
struct ReaderNetImpl : nn::Module {
  nn::Sequential encoder{nullptr};
  nn::Linear decoder{nullptr}, classifier{nullptr};

  ReaderNetImpl() {
    encoder =
        register_module("encoder", nn::Sequential(nn::Conv2d(1, 16, 3, {.padding = 1}), nn::GELU(), nn::AvgPool2d(2),
                                                  nn::Flatten(), nn::Linear(16 * 4 * 4, 64), nn::GELU()));
    decoder = register_module("decoder", nn::Linear(64, 64));
    classifier = register_module("classifier", nn::Linear(64, 10));
  }
  // The logits, and the image drawn again.
  std::pair<Tensor, Tensor> forward(const Tensor& images) {
    const Tensor features = encoder((images - 0.3053) / 0.3760);
    return {classifier(features), decoder(features)};
  }
};
BRIGADE_MODULE(ReaderNet);

class ManualLoop {
 public:
  ManualLoop(dist::ProcessGroupPtr group, const TrainOptions& options);
  TrainResult run();

 private:
  void add_parts(optim::Checkpoint& checkpoint);
  Tensor step(const Examples& batch);
  void step_optimizers();
  void step_schedules(double loss);
  void evaluate(TrainResult& result);

  dist::ProcessGroupPtr group_;
  const TrainOptions& options_;
  AmpManualForm form_;
  const amp::Precision& precision_;
  Device device_;
  Digits digits_;
  DigitsBatches batches_;
  ReaderNet net_;
  amp::GradScaler scaler_;
  std::array<optim::Adam, 3> optimizers_;
  std::array<optim::ReduceLROnPlateau, 3> schedules_;
  double loss_sum_ = 0;  // of the epoch, of the means over the ranks
  dist::DistributedDataParallel<ReaderNet> ddp_;
};

ReaderNet make_net(const TrainOptions& options, Device device) {
  manual_seed(options.seed);
  ReaderNet net;
  net->to(amp::find_precision(options.precision).parameters);
  net->to(device);
  return net;
}

constexpr optim::AdamOptions adam(double lr) { return {.lr = lr}; }
const optim::ReduceLROnPlateauOptions kPlateau{.factor = 0.5, .patience = 2};

// Short as this training is, the scale is to be seen growing; and the mistake that is found where it
// grows between two optimizers is to be seen at once.
int64_t growth_interval_of(const AmpManualForm& form) { return form.updates_once ? 100 : 4; }

ManualLoop::ManualLoop(dist::ProcessGroupPtr group, const TrainOptions& options)
    : group_(std::move(group)),
      options_(options),
      form_(form_of(options.form)),
      precision_(amp::find_precision(options.precision)),
      device_(ready_device(options, *group_)),
      digits_(digits_on(device_, precision_)),
      batches_(digits_.train, *group_, options),
      net_(make_net(options, device_)),
      scaler_({.growth_interval = growth_interval_of(form_), .enabled = precision_.scales, .device = device_.type}),
      optimizers_{optim::Adam(net_->encoder->parameters(), adam(options.lr)),
                  optim::Adam(net_->decoder->parameters(), adam(options.lr)),
                  optim::Adam(net_->classifier->parameters(), adam(options.lr))},
      schedules_{optim::ReduceLROnPlateau(optimizers_[0], kPlateau), optim::ReduceLROnPlateau(optimizers_[1], kPlateau),
                 optim::ReduceLROnPlateau(optimizers_[2], kPlateau)},
      ddp_(net_, group_, strategy_options(options.strategy, options.bucket_mb)) {
  if (options.trace_steps > 0) ddp_.reducer().timeline().keep(static_cast<size_t>(options.trace_steps));
}

void ManualLoop::add_parts(optim::Checkpoint& checkpoint) {
  checkpoint.module("model", *net_);
  for (size_t i = 0; i < optimizers_.size(); ++i) {
    checkpoint.optimizer(fmt::format("adam{}", i), optimizers_[i]);
    checkpoint.scheduler(fmt::format("plateau{}", i), schedules_[i]);
  }
  checkpoint.number("loss_sum", loss_sum_);
  add_scaler(checkpoint, scaler_);
}

Tensor ManualLoop::step(const Examples& batch) {
  if (form_.clears_gradients) {
    for (optim::Adam& optimizer : optimizers_)
      optimizer.zero_grad();
  }
  const Tensor loss = under(precision_, device_, [&] {
    const auto [logits, drawing] = ddp_(batch.images);
    return cross_entropy(logits, batch.labels) + mse_loss(drawing, batch.images.flatten(1).to(drawing.dtype()));
  });
  if (form_.scales_loss) {
    scaler_.scale(loss).backward();
  } else {
    loss.backward();
  }
  step_optimizers();
  return loss.detach();
}

void ManualLoop::step_optimizers() {
  for (optim::Adam& optimizer : optimizers_) {
    scaler_.unscale_(optimizer);
    optim::clip_grad_norm_(optimizer.parameters(), 1.0);
    scaler_.step(optimizer);
    if (!form_.updates_once) scaler_.update();
  }
  if (form_.updates_once) scaler_.update();
}

void ManualLoop::step_schedules(double loss) {
  for (optim::ReduceLROnPlateau& schedule : schedules_)
    schedule.step(loss);
}

TrainResult ManualLoop::run() {
  Progress progress(options_);
  add_parts(progress.checkpoint);
  progress.resume(batches_.steps());
  TrainResult result = begun(device_, progress, batches_.per_epoch());
  StepLog log(group_, options_, batches_.steps(), progress.steps);
  while (progress.steps < batches_.steps()) {
    const Examples batch = batches_.at(progress.steps);
    log.begin();
    const Tensor loss = step(batch);
    if (!form_.averages_schedule) step_schedules(loss.to(kFloat64).item());
    // The mean over all ranks: the same number everywhere, as the schedules need it.
    loss_sum_ += log.end({{"loss", loss}});
    ++progress.steps;
    if (progress.steps % batches_.per_epoch() == 0) {
      if (form_.averages_schedule) step_schedules(loss_sum_ / static_cast<double>(batches_.per_epoch()));
      loss_sum_ = 0;
    }
    progress.save(*group_, batches_.per_epoch(), batches_.steps());
  }
  log.finish(result);
  if (options_.trace_steps > 0) result.trace = dist::trace_json(*group_, ddp_.reducer());
  evaluate(result);
  return ended(std::move(result), *group_, net_->parameters(), log);
}

void ManualLoop::evaluate(TrainResult& result) {
  const NoGradGuard no_grad;
  const auto [logits, drawing] = under(precision_, device_, [&] { return net_(digits_.test.images); });
  result.metrics["accuracy"] = accuracy_of(logits, digits_.test.labels);
  result.metrics["error of the drawing"] =
      mse_loss(drawing.to(kFloat64), digits_.test.images.flatten(1).to(kFloat64)).item();
  result.metrics["learning rate"] = optimizers_[0].lr();
  if (precision_.scales) {
    result.metrics["loss scale"] = scaler_.get_scale();
    result.metrics["skipped steps"] = static_cast<double>(optimizers_[0].steps_skipped());
  }
  note_warnings(ddp_, result);
}

std::string in_words(const TrainResult& result) {
  return fmt::format("held-out accuracy {:.2f} %, learning rate {:.2g}", 100 * result.metrics.at("accuracy"),
                     result.metrics.at("learning rate"));
}

const AddRecipe add(
    {.name = "amp-manual",
     .about = "three optimizers with a schedule each under one loss scaler",
     .forms = {{.name = "right",
                .about = "a scaled loss, one update() per iteration, schedules by the mean loss of an epoch",
                .fault = "OK-31"},
               {.name = "plain-backward",
                .about = "loss.backward() past the scaler: \"Attempted unscale_ but _scale is None\"",
                .verdict = {"error", ""},
                .fault = "AMP-01"},
               {.name = "update-per-optimizer",
                .about = "update() after each optimizer, as Lightning does; the scale changes in between",
                .verdict = {"error", ""},
                .fault = "AMP-03"},
               {.name = "local-schedule",
                .about = "schedules step at each batch, by the rank's own loss",
                .verdict = {"optimizers_differ", "options_differ"},
                .fault = "DIV-15",
                .shows_in = 60},
               {.name = "no-zero-grad",
                .about = "no zero_grad(): gradients of two iterations, one of them unscaled, add up",
                .verdict = {"error", ""},
                .fault = "AMP-16"}},
     .defaults = {.precision = "16-mixed", .epochs = 20, .lr = 3e-3},
     .train = [](const auto& group, const auto& options) { return ManualLoop(group, options).run(); },
     .metrics_in_words = &in_words});

}  // namespace

}  // namespace brigade::lab
