// The recipe `resnet`: ResNet-18 names images, with dist::Fabric and data::DataLoader, in the forms in
// which people normalise by batches on several ranks.
//
// A batch norm sees the batch of its rank: it normalises by the statistics of that part, and two ranks
// with 32 images each compute something else than one process with 64. A SyncBatchNorm asks all ranks:
// the curve is the same on any number of them. The price is an exchange per layer and direction, which
// every rank has to come to; so a forward in training mode on one rank alone meets nobody.
// Running statistics are buffers: each rank moves its own, and the wrapper sends those of rank 0 before
// each forward, unless broadcast_buffers is off: then each rank evaluates another network.
#include <brigade/lab/recipes/recipe.h>
#include <brigade/lab/recipes/resnet/images.h>

#include <brigade/autograd/functional.h>
#include <brigade/data/data_loader.h>
#include <brigade/dist/ddp/sync_batch_norm.h>
#include <brigade/dist/ddp/trace.h>
#include <brigade/dist/fabric/fabric.h>
#include <brigade/lab/recipes/training.h>
#include <brigade/lab/resnet18.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

namespace brigade::lab::resnet {
namespace {

struct ResNetForm {
  bool synchronises = true;        // SyncBatchNorm in the place of each BatchNorm2d
  bool broadcasts_buffers = true;  // false: each rank keeps running statistics of its own
  bool looks_on_one_rank = false;  // rank 0 alone looks at held-out images, and forgets eval()
};

ResNetForm resnet_form(const std::string& name) {
  if (name == "local-batch-norm") return {.synchronises = false};
  if (name == "buffers-not-broadcast") return {.synchronises = false, .broadcasts_buffers = false};
  if (name == "look-on-one-rank") return {.looks_on_one_rank = true};
  return {};
}

constexpr int64_t kAtOnce = 128;  // images of a batch to evaluate

dist::FabricOptions resnet_options(const TrainOptions& options, const ResNetForm& form) {
  return fabric_options(options, [&](dist::DDPOptions& ddp) {
    ddp.broadcast_buffers = form.broadcasts_buffers;
    // The replicas are compared at each step; without that nobody looks at buffers.
    if (!form.broadcasts_buffers) ddp.verify_every = 1;
  });
}

// On this rank, by this rank's running statistics.
double accuracy_on(const dist::Fabric& fabric, ResNet18& net, const ImageSets& images) {
  const NoGradGuard no_grad;
  net->eval();
  const auto region = fabric.autocast();
  double right = 0;
  for (const data::Example& batch : data::DataLoader(images.test, {.batch_size = kAtOnce})) {
    const Tensor logits = net(batch.data.to(fabric.precision().parameters).to(fabric.device()));
    right += accuracy_of(logits, batch.target.to(fabric.device())) * static_cast<double>(batch.target.numel());
  }
  net->train();
  return right / static_cast<double>(images.test->size());
}

TrainResult train_resnet(const dist::ProcessGroupPtr& group, const TrainOptions& options) {
  const ResNetForm form = resnet_form(options.form);
  dist::Fabric fabric(resnet_options(options, form), group);
  const ImageSets images = load_images(options.data);
  auto loader = fabric.setup_dataloaders(
      data::DataLoader(images.train, {.batch_size = batch_of_a_rank(options, *group, images.train->size()),
                                      .shuffle = true,
                                      .seed = options.seed,
                                      .drop_last = true,
                                      .num_workers = options.data.empty() ? 0 : 2}));
  const int64_t steps = steps_of(options, loader->size());

  dist::Fabric::seed_everything(options.seed);
  const int64_t own_width = options.data.empty() ? 16 : 64;
  ResNet18 net(ResNet18Options{.channels = images.test->get(0).data.size(0),
                               .classes = 10,
                               .width = options.width > 0 ? options.width : own_width,
                               .for_small_images = true,
                               .mean = 0.5,
                               .deviation = 0.25});
  if (form.synchronises) dist::convert_sync_batchnorm(net, group);
  optim::SGD sgd(net->parameters(), {.lr = options.lr, .momentum = 0.9, .weight_decay = 5e-4});
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
    // eval() is missing, so each SyncBatchNorm waits for the other ranks.
    if (form.looks_on_one_rank && progress.steps % 10 == 1)
      fabric.rank_zero_only([&] {
        const NoGradGuard no_grad;
        model(images.test->get(0).data.unsqueeze(0).to(fabric.device()));
      });
    log.begin();
    optimizer.zero_grad();
    const Tensor loss = cross_entropy(model(batch.data), batch.target);
    fabric.backward(loss);
    optimizer.step();
    log.end({{"loss", loss}});
  });
  log.finish(result);
  if (options.trace_steps > 0) result.trace = dist::trace_json(*model.ddp());
  const double own = accuracy_on(fabric, net, images);
  result.metrics["accuracy"] = fabric.all_reduce(own);
  result.metrics["accuracy, worst rank"] = fabric.all_reduce(own, dist::ReduceOp::Min);
  result.metrics["buffers equal"] = same_on_all_ranks(*group, net->buffers()) ? 1 : 0;
  note_warnings(*model.ddp(), result);
  return ended(std::move(result), *group, net->parameters(), log);
}

std::string in_words(const TrainResult& result) {
  const std::string accuracy = fmt::format("held-out accuracy {:.2f} %", 100 * result.metrics.at("accuracy"));
  if (result.metrics.at("buffers equal") == 1) return accuracy;
  return fmt::format("{} ({:.2f} % on the worst rank: running statistics differ)", accuracy,
                     100 * result.metrics.at("accuracy, worst rank"));
}

const AddRecipe add(
    {.name = "resnet",
     .about = "ResNet-18 names images: CIFAR-10 in a folder (--data), or the digits, enlarged",
     .forms = {{.name = "sync-batch-norm",
                .about = "SyncBatchNorm: statistics of all ranks, the same curve on any number of them"},
               {.name = "local-batch-norm", .about = "BatchNorm2d: each rank normalises by its part of the batch"},
               {.name = "buffers-not-broadcast",
                .about = "the same with broadcast_buffers off: each rank has running statistics of its own",
                .fault = "DIV-19",
                .warning = "buffers_differ"},
               {.name = "look-on-one-rank",
                .about = "rank 0 looks at a held-out image through the wrapper, without eval()",
                .verdict = {"collective_mismatch", "collective_differs"},
                .fault = "COL-02"}},
     .defaults = {.epochs = 10, .lr = 0.05},
     .takes_images = true,
     .train = &train_resnet,
     .metrics_in_words = &in_words});

}  // namespace
}  // namespace brigade::lab::resnet
