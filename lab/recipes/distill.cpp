// Distillation under DDP, in the forms in which people write it: which module is wrapped, and which
// is called.
//
// In PyTorch the wrapper prepares its reducer in its own forward. A child that is called directly,
// round the wrapper, has a backward that nobody expects: gradients stay those of the rank, each
// rank trains a model of its own, and nothing says so. An all_reduce of the loss changes nothing
// about that, since the loss is a number by then: gradients are what has to be averaged. Here the
// reducer listens to the engine, which tells it of every gradient of a parameter that it knows,
// whichever module was called. So these forms are right, bit for bit as the others; and where
// gradients do stay local (the form `local-gradients`), the step that would use them is an error.
#include <brigade/lab/recipes/distill.h>

#include <brigade/amp/grad_scaler.h>
#include <brigade/autograd/functional.h>
#include <brigade/dist/reducer/trace.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/recipes/digits_batches.h>
#include <brigade/lab/recipes/progress.h>
#include <brigade/lab/recipes/step_log.h>
#include <brigade/lab/recipes/strategy_options.h>
#include <brigade/lab/recipes/training.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

#include <optional>

namespace brigade::lab {

StudentNetImpl::StudentNetImpl() {
  conv = register_module("conv", nn::Conv2d(1, 8, 3, {.padding = 1}));
  fc1 = register_module("fc1", nn::Linear(8 * 4 * 4, 32));
  fc2 = register_module("fc2", nn::Linear(32, 10));
}

Tensor StudentNetImpl::forward(const Tensor& images) {
  const Tensor features = avg_pool2d(gelu(conv((images - 0.3053) / 0.3760)), 2).flatten(1);
  return fc2(gelu(fc1(features)));
}

TeacherStudentImpl::TeacherStudentImpl() {
  insert("teacher", teacher);
  insert("student", student);
}

std::pair<Tensor, Tensor> TeacherStudentImpl::forward(const Tensor& images) {
  return {teacher(images), student(images)};
}

namespace {

// What is wrapped, and what is called.
struct DistillForm {
  bool wraps_student = false;  // the student alone is wrapped; else the whole ModuleDict
  bool calls_child = false;    // the student is called directly, round the wrapper of the ModuleDict
  bool reduces_loss = false;   // after backward the mean of the loss is taken over the ranks
  bool stays_local = false;    // each backward in no_sync: what a child called directly is in PyTorch
};

DistillForm form_of(const std::string& name) {
  if (name == "student-alone") return {.wraps_student = true};
  if (name == "child-called") return {.calls_child = true};
  if (name == "loss-all-reduce") return {.calls_child = true, .reduces_loss = true};
  if (name == "local-gradients") return {.calls_child = true, .reduces_loss = true, .stays_local = true};
  return {};
}

// Softened by the temperature, the teacher's answer also says which wrong digits are nearly right.
// The gradient of the soft part falls with the square of the temperature; the factor makes up for it.
Tensor distillation_loss(const Tensor& teacher, const Tensor& student, const Tensor& labels) {
  constexpr double kTemperature = 4, kSoft = 0.7;
  const Tensor soft =
      kl_div(log_softmax(student / kTemperature, 1), softmax(teacher / kTemperature, 1), KLDivReduction::BatchMean);
  return soft * (kSoft * kTemperature * kTemperature) + cross_entropy(student, labels) * (1 - kSoft);
}

class Distillation {
 public:
  Distillation(dist::ProcessGroupPtr group, const TrainOptions& options, const DistillSettings& settings);
  TrainResult run();

 private:
  void wrap();
  Tensor loss_of(const Examples& batch);
  Tensor step(const Examples& batch);

  dist::ProcessGroupPtr group_;
  const TrainOptions& options_;
  const DistillSettings& settings_;
  DistillForm form_;
  const amp::Precision& precision_;
  Device device_;
  Digits digits_;
  DigitsBatches batches_;
  TeacherStudent pair_;
  amp::GradScaler scaler_;
  // One of the two.
  std::optional<dist::DistributedDataParallel<TeacherStudent>> whole_;
  std::optional<dist::DistributedDataParallel<StudentNet>> student_;
  dist::DistributedDataParallelBase* wrapper_ = nullptr;
  optim::SGD optimizer_;  // the student's parameters only
};

TeacherStudent make_pair(const TrainOptions& options, const DistillSettings& settings, Device device) {
  manual_seed(options.seed);
  TeacherStudent pair;
  pair->to(amp::find_precision(options.precision).parameters);
  if (settings.start) settings.start(pair);
  pair->to(device);
  return pair;
}

Distillation::Distillation(dist::ProcessGroupPtr group, const TrainOptions& options, const DistillSettings& settings)
    : group_(std::move(group)),
      options_(options),
      settings_(settings),
      form_(form_of(options.form)),
      precision_(amp::find_precision(options.precision)),
      device_(ready_device(options, *group_)),
      digits_(digits_on(device_, precision_)),
      batches_(digits_.train, *group_, options, settings.shuffle),
      pair_(make_pair(options, settings, device_)),
      scaler_({.enabled = precision_.scales, .device = device_.type}),
      optimizer_(pair_->student->parameters(), {.lr = options.lr, .momentum = 0.9}) {}

// The teacher is frozen before anything is wrapped: then no wrapper expects gradients of it.
void Distillation::wrap() {
  pair_->teacher->requires_grad_(false);
  pair_->teacher->zero_grad();
  const dist::DDPOptions chosen = strategy_options(options_.strategy, options_.bucket_mb);
  if (form_.wraps_student) {
    wrapper_ = &student_.emplace(pair_->student, group_, chosen);
  } else {
    wrapper_ = &whole_.emplace(pair_, group_, chosen);
  }
  if (options_.trace_steps > 0) wrapper_->reducer().timeline().keep(static_cast<size_t>(options_.trace_steps));
}

// What the forms differ in.
Tensor Distillation::loss_of(const Examples& batch) {
  if (form_.wraps_student)
    return distillation_loss(pair_->teacher(batch.images), (*student_)(batch.images), batch.labels);
  if (form_.calls_child)  // through the ModuleDict, as in fabric.setup(pair)["student"]
    return distillation_loss((*pair_)["teacher"](batch.images), (*pair_)["student"](batch.images), batch.labels);
  const auto [teacher, student] = (*whole_)(batch.images);
  return distillation_loss(teacher, student, batch.labels);
}

Tensor Distillation::step(const Examples& batch) {
  optimizer_.zero_grad();
  Tensor loss;
  {
    std::optional<dist::DistributedDataParallelBase::NoSync> local;
    if (form_.stays_local) local.emplace(wrapper_->no_sync());
    loss = under(precision_, device_, [&] { return loss_of(batch); });
    scaler_.scale(loss).backward();
  }
  const Tensor own = loss.detach().clone();
  // Averages a number that nothing depends on any more.
  if (form_.reduces_loss)
    group_->all_reduce(loss.detach(), {.op = dist::ReduceOp::Avg, .description = "loss, as advised"})->wait();
  scaler_.step(optimizer_);
  scaler_.update();
  return own;
}

TrainResult Distillation::run() {
  Progress progress(options_);
  progress.checkpoint.module("model", *pair_).optimizer("sgd", optimizer_);
  add_scaler(progress.checkpoint, scaler_);
  progress.resume(batches_.steps());
  optimizer_.set_lr(0, options_.lr);
  // Each rank trains the same teacher, unless it is in the file.
  if (options_.resume.empty()) train_classifier(pair_->teacher, digits_.train, settings_.teacher_epochs, options_.seed);
  wrap();

  TrainResult result = begun(device_, progress, batches_.per_epoch());
  StepLog log(group_, options_, batches_.steps(), progress.steps);
  while (progress.steps < batches_.steps()) {
    const Examples batch = batches_.at(progress.steps);
    log.begin();
    const Tensor loss = step(batch);
    log.end({{"loss", loss}});
    ++progress.steps;
    progress.save(*group_, batches_.per_epoch(), batches_.steps());
  }
  log.finish(result);
  if (options_.trace_steps > 0) result.trace = dist::trace_json(*group_, wrapper_->reducer());
  const NoGradGuard no_grad;
  const auto accuracy = [&](const Tensor& logits) { return accuracy_of(logits, digits_.test.labels); };
  result.metrics["accuracy"] = accuracy(pair_->student(digits_.test.images));
  result.metrics["teacher accuracy"] = accuracy(pair_->teacher(digits_.test.images));
  return ended(std::move(result), *group_, pair_->parameters(), log);
}

std::string in_words(const TrainResult& result) {
  return fmt::format("held-out accuracy {:.2f} % (teacher {:.2f} %)", 100 * result.metrics.at("accuracy"),
                     100 * result.metrics.at("teacher accuracy"));
}

const AddRecipe add(
    {.name = "distill",
     .about = "a small network learns the digits from a large, frozen one",
     .forms = {{.name = "whole-module",
                .about = "a ModuleDict of both is wrapped, the optimizer has the student",
                .fault = "OK-14"},
               {.name = "student-alone", .about = "only the student is wrapped", .fault = "OK-15"},
               {.name = "child-called",
                .about =
                    "the ModuleDict is wrapped, its student called directly: right here, local gradients in PyTorch",
                .fault = "DIV-01"},
               {.name = "loss-all-reduce",
                .about = "the same with the popular all_reduce of the loss, which changes nothing",
                .fault = "DIV-02"},
               {.name = "local-gradients",
                .about = "the same in no_sync, so that gradients stay on their rank as in PyTorch",
                .verdict = {"unreduced_gradients", "not_reduced"},
                .fault = "DIV-05"}},
     .train = [](const auto& group, const auto& options) { return train_distill(group, options); },
     .metrics_in_words = &in_words});

}  // namespace

TrainResult train_distill(const dist::ProcessGroupPtr& group, const TrainOptions& options,
                          const DistillSettings& settings) {
  return Distillation(group, options, settings).run();
}

}  // namespace brigade::lab
