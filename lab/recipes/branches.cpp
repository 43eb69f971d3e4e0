// The recipe `branches`: networks that do not run all their layers in each step: a random branch per
// step and rank, and a mixture of experts of which some get nothing to do.
//
// A wrapper that is strict takes a parameter without gradient for a mistake, and says on which rank
// its branch did not run. What a program may say instead:
//
// - find_unused_parameters: each step may use another set on each rank. What a rank did not use
//   counts as zero in the mean; what no rank used keeps no gradient, and its optimizer lets it be.
// - static_graph: each step uses the set of the first one. Layers that are never used are allowed,
//   those that come or go later are an error.
// - An expert without images that is called all the same, with an empty batch, is used: its gradient
//   is zero, and even a strict wrapper is content. (An optimizer with momentum moves it then, where
//   it lets one be that has no gradient.)
#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/trace.h>
#include <brigade/dist/fabric/fabric.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/recipes/branches_nets.h>
#include <brigade/lab/recipes/step_log.h>
#include <brigade/lab/recipes/training.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

namespace brigade::lab::branches {
namespace {

struct BranchesForm {
  enum class Choice : uint8_t {
    Random,   // each rank draws a branch for each step
    First,    // always the same one; the others are never used
    Experts,  // each image goes to the expert that a gate prefers
  };
  Choice choice = Choice::Random;
  bool find_unused_parameters = false;
  bool static_graph = false;
  bool calls_idle_experts = false;  // with no images at all; else they are left out
};

BranchesForm form_of(const std::string& name) {
  using enum BranchesForm::Choice;
  if (name == "strict") return {};
  if (name == "static-graph") return {.static_graph = true};
  if (name == "static-graph-one-branch") return {.choice = First, .static_graph = true};
  if (name == "experts") return {.choice = Experts, .find_unused_parameters = true};
  if (name == "experts-strict") return {.choice = Experts};
  if (name == "experts-idle-called") return {.choice = Experts, .calls_idle_experts = true};
  return {.find_unused_parameters = true};
}

// The branch of a step on a rank: number step * ranks + rank of a stream of random numbers, so that
// a training that is resumed draws the same.
int64_t random_branch(const TrainOptions& options, const dist::ProcessGroup& group, int64_t step) {
  RandomGenerator generator(options.seed);
  generator.set_offset(static_cast<uint64_t>(step * group.size() + group.rank()));
  return randint(0, BranchNetImpl::kBranches, {1}, {kInt64}, &generator).item<int64_t>();
}

// The loop is the same for both networks. `logits_of(model, images, step)` runs what was set up,
// `accuracy(net, examples)` is asked of what was learned.
template <nn::Holder Net, class Forward, class Accuracy>
TrainResult train(Net net, const dist::ProcessGroupPtr& group, const TrainOptions& options, const BranchesForm& form,
                  const Forward& logits_of, const Accuracy& accuracy) {
  dist::Fabric fabric(fabric_options(options,
                                     [&](dist::DDPOptions& ddp) {
                                       ddp.find_unused_parameters |= form.find_unused_parameters;
                                       ddp.static_graph |= form.static_graph;
                                     }),
                      group);
  const Digits digits = digits_on(fabric.device(), fabric.precision());
  auto loader = load_in_batches(fabric, digits.train, options);
  const int64_t steps = steps_of(options, loader->size());
  optim::SGD sgd(net->parameters(), {.lr = options.lr, .momentum = 0.9});
  auto [model, optimizer] = fabric.setup(net, sgd);
  keep_trace(*model.ddp(), options);

  Progress progress(options, fabric.checkpoint());
  progress.checkpoint.module("model", *net).optimizer("sgd", sgd);
  add_loader(progress.checkpoint, *loader);
  progress.resume(steps);
  sgd.set_lr(0, options.lr);

  TrainResult result = begun(fabric.device(), progress, loader->size());
  StepLog log(group, options, steps, progress.steps);
  train_on(loader, progress, *group, steps, [&, &model = model, &optimizer = optimizer](const data::Example& batch) {
    log.begin();
    optimizer.zero_grad();
    const Tensor loss = cross_entropy(logits_of(model, batch.data, progress.steps), batch.target);
    fabric.backward(loss);
    optimizer.step();
    log.end({{"loss", loss}});
  });
  log.finish(result);
  if (options.trace_steps > 0) result.trace = dist::trace_json(*model.ddp());
  note_warnings(*model.ddp(), result);
  {
    const NoGradGuard no_grad;
    result.metrics["accuracy"] = accuracy(net, digits.test);
  }
  return ended(std::move(result), *group, net->parameters(), log);
}

TrainResult train_branch_net(const dist::ProcessGroupPtr& group, const TrainOptions& options,
                             const BranchesForm& form) {
  manual_seed(options.seed);
  const bool random = form.choice == BranchesForm::Choice::Random;
  const auto logits_of = [&](auto& model, const Tensor& images, int64_t step) {
    return model(images, random ? random_branch(options, *group, step) : 0);
  };
  // Each branch has learned to answer by itself.
  const auto accuracy = [&](BranchNet& net, const Examples& test) {
    const int64_t trained = random ? BranchNetImpl::kBranches : 1;
    double sum = 0;
    for (int64_t branch = 0; branch < trained; ++branch)
      sum += accuracy_of(net(test.images, branch), test.labels);
    return sum / static_cast<double>(trained);
  };
  return train(BranchNet(), group, options, form, logits_of, accuracy);
}

TrainResult train_expert_net(const dist::ProcessGroupPtr& group, const TrainOptions& options,
                             const BranchesForm& form) {
  manual_seed(options.seed);
  ExpertNet net;
  const auto logits_of = [&](auto& model, const Tensor& images, int64_t) {
    return model(images, form.calls_idle_experts);
  };
  double idle = 0;
  const auto accuracy = [&](ExpertNet& trained, const Examples& test) {
    idle = static_cast<double>(trained->idle);
    return accuracy_of(trained(test.images, false), test.labels);
  };
  TrainResult result = train(net, group, options, form, logits_of, accuracy);
  result.metrics["idle experts"] = mean_over_ranks(*group, idle, "experts without an image in the last step");
  return result;
}

TrainResult train_branches(const dist::ProcessGroupPtr& group, const TrainOptions& options) {
  const BranchesForm form = form_of(options.form);
  return form.choice == BranchesForm::Choice::Experts ? train_expert_net(group, options, form)
                                                      : train_branch_net(group, options, form);
}

const AddRecipe add(
    {.name = "branches",
     .about = "networks of which each step runs a part: a random branch, or experts that a gate chooses",
     .forms = {{.name = "dynamic", .about = "each rank draws a branch for each step; find_unused_parameters"},
               {.name = "strict",
                .about = "the same under a strict wrapper",
                .verdict = {"unused_parameters", "module_not_called"},
                .fault = "UNU-15"},
               {.name = "static-graph",
                .about = "the same with static_graph, which expects the branches of the first step",
                .verdict = {"static_graph_changed", "graph_changed"},
                .fault = "UNU-19"},
               {.name = "static-graph-one-branch", .about = "static_graph, and always the same branch"},
               {.name = "experts", .about = "experts without an image are left out; find_unused_parameters"},
               {.name = "experts-strict",
                .about = "the same under a strict wrapper",
                .verdict = {"unused_parameters", "module_not_called"},
                .fault = "UNU-15"},
               {.name = "experts-idle-called",
                .about = "a strict wrapper; experts without an image run on an empty batch"}},
     .train = &train_branches,
     .metrics_in_words = [](const TrainResult& result) {
       return fmt::format("held-out accuracy {:.2f} %", 100 * result.metrics.at("accuracy"));
     }});

}  // namespace
}  // namespace brigade::lab::branches
