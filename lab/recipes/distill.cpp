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

#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/trace.h>
#include <brigade/dist/fabric/fabric.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/recipes/step_log.h>
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

}  // namespace brigade::lab

namespace brigade::lab::distill {
namespace {

// What is wrapped, and what is called.
struct DistillForm {
  bool wraps_student = false;  // the student alone is wrapped; else the whole ModuleDict
  bool calls_child = false;    // the student is called directly, round the wrapper of the ModuleDict
  bool reduces_loss = false;   // after backward the mean of the loss is taken over the ranks
  bool stays_local = false;    // no_backward_sync round each backward: what a child called directly is in PyTorch
};

DistillForm form_of(const std::string& name) {
  if (name == "student-alone") return {.wraps_student = true};
  if (name == "child-called") return {.calls_child = true};
  if (name == "loss-all-reduce") return {.calls_child = true, .reduces_loss = true};
  if (name == "local-gradients") return {.calls_child = true, .reduces_loss = true, .stays_local = true};
  return {};
}

// What a call through a Fabric's module gives, for one round it.
Tensor widened(const Tensor& logits) { return is_half(logits.dtype()) ? logits.to(kFloat32) : logits; }

// Softened by the temperature, the teacher's answer also says which wrong digits are nearly right.
// The gradient of the soft part falls with the square of the temperature; the factor makes up for it.
Tensor distillation_loss(const Tensor& from_teacher, const Tensor& from_student, const Tensor& labels) {
  constexpr double kTemperature = 4, kSoft = 0.7;
  const Tensor teacher = widened(from_teacher), student = widened(from_student);
  const Tensor soft =
      kl_div(log_softmax(student / kTemperature, 1), softmax(teacher / kTemperature, 1), KLDivReduction::BatchMean);
  return soft * (kSoft * kTemperature * kTemperature) + cross_entropy(student, labels) * (1 - kSoft);
}

class Distillation {
 public:
  Distillation(const dist::ProcessGroupPtr& group, const TrainOptions& options, const DistillSettings& settings);
  TrainResult run();

 private:
  void set_up();
  Tensor loss_of(const data::Example& batch);
  Tensor step(const data::Example& batch);

  const TrainOptions& options_;
  const DistillSettings& settings_;
  DistillForm form_;
  dist::Fabric fabric_;
  Digits digits_;
  dist::FabricDataLoader<data::Example, data::Example> loader_;
  TeacherStudent pair_;
  optim::SGD sgd_;  // the student's parameters only
  dist::FabricOptimizer optimizer_;
  // One of the two.
  std::optional<dist::FabricModule<TeacherStudent>> whole_;
  std::optional<dist::FabricModule<StudentNet>> student_;
};

// On its device before anything is set up: the teacher learns alone.
TeacherStudent make_pair(const TrainOptions& options, const DistillSettings& settings, const dist::Fabric& fabric) {
  dist::Fabric::seed_everything(options.seed);
  TeacherStudent pair;
  pair->to(fabric.precision().parameters);
  if (settings.start) settings.start(pair);
  pair->to(fabric.device());
  return pair;
}

Distillation::Distillation(const dist::ProcessGroupPtr& group, const TrainOptions& options,
                           const DistillSettings& settings)
    : options_(options),
      settings_(settings),
      form_(form_of(options.form)),
      fabric_(fabric_options(options), group),
      digits_(digits_on(fabric_.device(), fabric_.precision())),
      loader_(load_in_batches(fabric_, digits_.train, options, settings.shuffle)),
      pair_(make_pair(options, settings, fabric_)),
      sgd_(pair_->student->parameters(), {.lr = options.lr, .momentum = 0.9}),
      optimizer_(fabric_.setup_optimizers(sgd_)) {}

// The teacher is frozen before anything is wrapped: then no wrapper expects gradients of it.
void Distillation::set_up() {
  pair_->teacher->requires_grad_(false);
  pair_->teacher->zero_grad();
  if (form_.wraps_student) {
    student_ = fabric_.setup_module(pair_->student);
  } else {
    whole_ = fabric_.setup_module(pair_);
  }
}

// What the forms differ in.
Tensor Distillation::loss_of(const data::Example& batch) {
  // A call round the wrapper, and a teacher outside of it, compute in the precision only where the loop says so.
  const auto region = fabric_.autocast();
  if (form_.wraps_student) return distillation_loss(pair_->teacher(batch.data), (*student_)(batch.data), batch.target);
  if (form_.calls_child) {  // through the ModuleDict: model["student"]
    TeacherStudentImpl& model = **whole_;
    return distillation_loss(model["teacher"](batch.data), model["student"](batch.data), batch.target);
  }
  const auto [teacher, student] = (*whole_)(batch.data);
  return distillation_loss(teacher, student, batch.target);
}

Tensor Distillation::step(const data::Example& batch) {
  optimizer_.zero_grad();
  const Tensor loss = loss_of(batch);
  if (form_.stays_local) {
    const auto local = fabric_.no_backward_sync(*whole_);
    fabric_.backward(loss);
  } else {
    fabric_.backward(loss);
  }
  // Averages a number that nothing depends on any more.
  if (form_.reduces_loss) fabric_.all_reduce(loss.detach());
  optimizer_.step();
  return loss;
}

TrainResult Distillation::run() {
  const dist::ProcessGroupPtr& group = fabric_.group();
  const int64_t per_epoch = loader_->size(), steps = steps_of(options_, per_epoch);
  Progress progress(options_, fabric_.checkpoint());
  progress.checkpoint.module("model", *pair_).optimizer("sgd", sgd_);
  add_loader(progress.checkpoint, *loader_);
  progress.resume(steps);
  sgd_.set_lr(0, options_.lr);
  // Each rank trains the same teacher, unless it is in the file.
  if (options_.resume.empty()) train_classifier(pair_->teacher, digits_.train, settings_.teacher_epochs, options_.seed);
  set_up();
  using Wrapper = dist::DistributedDataParallelBase;
  Wrapper& ddp = form_.wraps_student ? static_cast<Wrapper&>(*student_->ddp()) : *whole_->ddp();
  keep_trace(ddp, options_);

  TrainResult result = begun(fabric_.device(), progress, per_epoch);
  StepLog log(group, options_, steps, progress.steps);
  train_on(loader_, progress, *group, steps, [&](const data::Example& batch) {
    log.begin();
    const Tensor loss = step(batch);
    log.end({{"loss", loss}});
  });
  log.finish(result);
  if (options_.trace_steps > 0) result.trace = dist::trace_json(ddp);
  const NoGradGuard no_grad;
  const auto accuracy = [&](const Tensor& logits) { return accuracy_of(logits, digits_.test.labels); };
  result.metrics["accuracy"] = accuracy(pair_->student(digits_.test.images));
  result.metrics["teacher accuracy"] = accuracy(pair_->teacher(digits_.test.images));
  return ended(std::move(result), *group, pair_->parameters(), log);
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
}  // namespace brigade::lab::distill

namespace brigade::lab {

TrainResult train_distill(const dist::ProcessGroupPtr& group, const TrainOptions& options,
                          const DistillSettings& settings) {
  return distill::Distillation(group, options, settings).run();
}

}  // namespace brigade::lab
