// The recipe `amp-manual`: an optimization loop written by hand in mixed precision, with three
// optimizers, three schedules and one loss scaler. What has to hold in such a loop:
//
// - The loss that backward starts from is scaled, which fabric.backward() does: it says which scale the
//   gradients have. A plain loss.backward() leaves nothing to divide by.
// - The scale stays what it is until every optimizer has stepped: update() comes once, at the end of
//   the iteration, and a Fabric finds out where that is. In between it may raise or lower the scale, and
//   the gradients of the optimizers that come later would be divided by another number than they were
//   multiplied with.
// - A schedule that looks at the loss looks at the same number on all ranks, or their learning rates
//   part.
// - Gradients are cleared before they are made again.
#include <brigade/amp/grad_scaler.h>
#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/trace.h>
#include <brigade/dist/fabric/fabric.h>
#include <brigade/lab/recipes/step_log.h>
#include <brigade/lab/recipes/training.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

#include <array>
#include <tuple>

namespace brigade::lab::amp_manual {
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

dist::FabricOptions options_of(const TrainOptions& options) {
  dist::FabricOptions chosen = fabric_options(options);
  chosen.scaler.growth_interval = 100;  // short as this training is, the scale is to be seen growing
  return chosen;
}

ReaderNet make_net(const TrainOptions& options) {
  dist::Fabric::seed_everything(options.seed);
  return ReaderNet();
}

// A Fabric updates its scale once per iteration, whatever the loop does; so the form that updates more
// often has a scaler of its own. Its mistake is found where the scale grows between two optimizers, and
// that is to be seen at once.
amp::GradScaler own_scaler(const dist::Fabric& fabric) {
  return amp::GradScaler({.growth_interval = 4, .enabled = fabric.precision().scales, .device = fabric.device().type});
}

constexpr optim::AdamOptions adam(double lr) { return {.lr = lr}; }
const optim::ReduceLROnPlateauOptions kPlateau{.factor = 0.5, .patience = 2};
constexpr double kMaxNorm = 1;

class ManualLoop {
 public:
  ManualLoop(const dist::ProcessGroupPtr& group, const TrainOptions& options);
  TrainResult run();

 private:
  void add_parts(optim::Checkpoint& checkpoint);
  Tensor step(const data::Example& batch);
  void backward_and_step(const Tensor& loss);
  void update_per_optimizer(const Tensor& loss);
  void step_schedules(double loss);
  void evaluate(TrainResult& result);

  const TrainOptions& options_;
  AmpManualForm form_;
  dist::Fabric fabric_;
  Digits digits_;
  dist::FabricDataLoader<data::Example, data::Example> loader_;
  ReaderNet net_;
  std::array<optim::Adam, 3> adams_;
  std::array<optim::ReduceLROnPlateau, 3> schedules_;
  double loss_sum_ = 0;  // of the epoch, of the means over the ranks
  dist::FabricModule<ReaderNet> model_;
  std::array<dist::FabricOptimizer, 3> optimizers_;
  amp::GradScaler own_scaler_;  // of the form update-per-optimizer
};

ManualLoop::ManualLoop(const dist::ProcessGroupPtr& group, const TrainOptions& options)
    : options_(options),
      form_(form_of(options.form)),
      fabric_(options_of(options), group),
      digits_(digits_on(fabric_.device(), fabric_.precision())),
      loader_(load_in_batches(fabric_, digits_.train, options)),
      net_(make_net(options)),
      adams_{optim::Adam(net_->encoder->parameters(), adam(options.lr)),
             optim::Adam(net_->decoder->parameters(), adam(options.lr)),
             optim::Adam(net_->classifier->parameters(), adam(options.lr))},
      schedules_{optim::ReduceLROnPlateau(adams_[0], kPlateau), optim::ReduceLROnPlateau(adams_[1], kPlateau),
                 optim::ReduceLROnPlateau(adams_[2], kPlateau)},
      model_(fabric_.setup_module(net_)),
      optimizers_(std::apply([](auto... each) { return std::array{each...}; },
                             fabric_.setup_optimizers(adams_[0], adams_[1], adams_[2]))),
      own_scaler_(own_scaler(fabric_)) {
  keep_trace(*model_.ddp(), options);
}

void ManualLoop::add_parts(optim::Checkpoint& checkpoint) {
  checkpoint.module("model", *net_);
  for (size_t i = 0; i < adams_.size(); ++i) {
    checkpoint.optimizer(fmt::format("adam{}", i), adams_[i]);
    checkpoint.scheduler(fmt::format("plateau{}", i), schedules_[i]);
  }
  checkpoint.number("loss_sum", loss_sum_);
  add_loader(checkpoint, *loader_);
}

Tensor ManualLoop::step(const data::Example& batch) {
  if (form_.clears_gradients) {
    for (dist::FabricOptimizer& optimizer : optimizers_)
      optimizer.zero_grad();
  }
  const auto [logits, drawing] = model_(batch.data);
  const Tensor loss =
      cross_entropy(logits, batch.target) + mse_loss(drawing, batch.data.flatten(1).to(drawing.dtype()));
  form_.updates_once ? backward_and_step(loss) : update_per_optimizer(loss);
  return loss.detach();
}

void ManualLoop::backward_and_step(const Tensor& loss) {
  if (form_.scales_loss) {
    fabric_.backward(loss);
  } else {
    loss.backward();
  }
  for (dist::FabricOptimizer& optimizer : optimizers_) {
    // Where no scaler skips such a step, the wrapper's warning names the operation that it comes from.
    fabric_.clip_gradients(optimizer, {.max_norm = kMaxNorm, .error_if_nonfinite = false});
    optimizer.step();
  }
}

void ManualLoop::update_per_optimizer(const Tensor& loss) {
  own_scaler_.scale(loss).backward();
  for (optim::Adam& optimizer : adams_) {
    own_scaler_.unscale_(optimizer);
    optim::clip_grad_norm_(optimizer.parameters(), kMaxNorm);
    own_scaler_.step(optimizer);
    own_scaler_.update();
  }
}

void ManualLoop::step_schedules(double loss) {
  for (optim::ReduceLROnPlateau& schedule : schedules_)
    schedule.step(loss);
}

TrainResult ManualLoop::run() {
  const dist::ProcessGroupPtr& group = fabric_.group();
  const int64_t per_epoch = loader_->size(), steps = steps_of(options_, per_epoch);
  Progress progress(options_, form_.updates_once ? fabric_.checkpoint() : optim::Checkpoint());
  if (!form_.updates_once) add_scaler(progress.checkpoint, own_scaler_);
  add_parts(progress.checkpoint);
  progress.resume(steps);
  TrainResult result = begun(fabric_.device(), progress, per_epoch);
  StepLog log(group, options_, steps, progress.steps);
  train_on(loader_, progress, *group, steps, [&](const data::Example& batch) {
    log.begin();
    const Tensor loss = step(batch);
    if (!form_.averages_schedule) step_schedules(loss.to(kFloat64).item());
    // The mean over all ranks: the same number everywhere, as the schedules need it.
    loss_sum_ += log.end({{"loss", loss}});
    const bool ends_epoch = (progress.steps + 1) % per_epoch == 0;
    if (!ends_epoch) return;
    if (form_.averages_schedule) step_schedules(loss_sum_ / static_cast<double>(per_epoch));
    loss_sum_ = 0;
  });
  log.finish(result);
  if (options_.trace_steps > 0) result.trace = dist::trace_json(*model_.ddp());
  evaluate(result);
  return ended(std::move(result), *group, net_->parameters(), log);
}

void ManualLoop::evaluate(TrainResult& result) {
  const NoGradGuard no_grad;
  const auto [logits, drawing] = model_(digits_.test.images);
  result.metrics["accuracy"] = accuracy_of(logits, digits_.test.labels);
  result.metrics["error of the drawing"] =
      mse_loss(drawing.to(kFloat64), digits_.test.images.flatten(1).to(kFloat64)).item();
  result.metrics["learning rate"] = adams_[0].lr();
  if (fabric_.precision().scales) {
    result.metrics["loss scale"] = (form_.updates_once ? fabric_.scaler() : own_scaler_).get_scale();
    result.metrics["skipped steps"] = static_cast<double>(adams_[0].steps_skipped());
  }
  note_warnings(*model_.ddp(), result);
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
}  // namespace brigade::lab::amp_manual
