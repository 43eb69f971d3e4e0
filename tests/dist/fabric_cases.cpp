// A training loop on a Fabric: the same weights, to the bit, as the loop that calls DDP itself.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <brigade/amp/grad_scaler.h>
#include <brigade/data/dataset.h>
#include <brigade/dist/ddp/sampler.h>
#include <brigade/dist/fabric/fabric.h>
#include <brigade/dist/groups/threads/run_threads.h>

#include <core/temporary_folder.h>

#include <algorithm>

namespace brigade::test::fabric_cases {
using dist::Fabric;
using dist::ProcessGroupPtr;
using mechanisms::loss_of;

struct TwoLayersImpl : nn::Module {
  nn::Linear a{nullptr}, b{nullptr};
  TwoLayersImpl() {
    a = register_module("a", nn::Linear(4, 6));
    b = register_module("b", nn::Linear(6, 3));
  }
  Tensor forward(const Tensor& x) { return b(brigade::tanh(a(x))); }
};
BRIGADE_MODULE(TwoLayers);

dist::FabricOptions cpu(const char* precision = "32-true", dist::Strategy strategy = "auto") {
  return {.accelerator = "cpu", .strategy = std::move(strategy), .precision = precision};
}

std::shared_ptr<data::TensorDataset> examples(int64_t count = 37) {
  RandomGenerator random(7);
  return std::make_shared<data::TensorDataset>(randn({count, 4}, kFloat32, &random));
}

// Two epochs by hand: sampler, wrapper, autocast, scaler.
std::string by_hand(const ProcessGroupPtr& group, const char* name) {
  const amp::Precision& precision = amp::find_precision(name);
  manual_seed(3);
  TwoLayers net;
  net->to(precision.parameters);
  dist::DistributedDataParallel ddp(net, group);
  optim::Adam adam(net->parameters(), {.lr = 0.01});
  amp::GradScaler scaler({.enabled = precision.scales});
  const auto dataset = examples();
  dist::DistributedSampler sampler(dataset->size(), group->rank(), group->size(), {.seed = 5});
  for (uint64_t epoch = 0; epoch < 2; ++epoch) {
    sampler.set_epoch(epoch);
    const std::vector<int64_t> mine = sampler.indices();
    for (size_t at = 0; at < mine.size(); at += 4) {
      const auto indices = std::span(mine).subspan(at, std::min<size_t>(4, mine.size() - at));
      const Tensor batch = dataset->get_batch(indices)->data;
      adam.zero_grad();
      Tensor output;
      {
        const amp::autocast region(kCPU, precision.autocast, precision.autocast.has_value());
        output = ddp(batch.to(precision.parameters));
      }
      if (is_half(output.dtype())) output = output.to(kFloat32);
      scaler.scale(loss_of(output)).backward();
      scaler.step(adam);
      scaler.update();
    }
  }
  return bits_of(net->parameters());
}

std::string on_fabric(const ProcessGroupPtr& group, const char* name, int workers) {
  Fabric fabric(cpu(name), group);
  Fabric::seed_everything(3);
  TwoLayers net;
  optim::Adam adam(net->parameters(), {.lr = 0.01});
  auto [model, optimizer] = fabric.setup(net, adam);
  auto loader = fabric.setup_dataloaders(
      data::DataLoader(examples(), {.batch_size = 4, .shuffle = true, .seed = 5, .num_workers = workers}));
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const data::Example& batch : loader) {
      optimizer.zero_grad();
      fabric.backward(loss_of(model(batch.data)));
      optimizer.step();
    }
  }
  return bits_of(net->parameters());
}

void check_loop(const std::string& backend, int ranks) {
  for (const char* precision : {"32-true", "64-true", "16-mixed", "bf16-mixed", "bf16-true"}) {
    CAPTURE(precision);
    const bool uses_workers = backend == "threads";
    expect_well(backend, ranks, [=](const ProcessGroupPtr& group) -> std::string {
      const std::string expected = by_hand(group, precision);
      if (on_fabric(group, precision, 0) != expected) return "other weights than by hand";
      if (uses_workers && on_fabric(group, precision, 2) != expected) return "other weights with workers";
      return "";
    });
  }
}
const AddRankCase add_loop("[002.1] [004.4] a loop on a Fabric gives the weights of the loop by hand, to the bit",
                           &check_loop, everywhere({2, 3}));

// In PyTorch the gradients of a student that is called without its wrapper stay local.
std::string reduces_a_submodule(const ProcessGroupPtr& group) {
  Fabric fabric(cpu(), group);
  manual_seed(1);
  TwoLayers teacher, student;
  teacher->requires_grad_(false);
  struct BothImpl : nn::Module {
    TwoLayers teacher, student;
    BothImpl(TwoLayers t, TwoLayers s)
        : teacher(register_module("teacher", std::move(t))), student(register_module("student", std::move(s))) {}
    Tensor forward(const Tensor& x) { return student(x); }
  };
  auto model = fabric.setup(nn::ModuleHolder<BothImpl>(teacher, student));
  const Tensor batch = randn({4, 4}) + static_cast<double>(group->rank());
  fabric.backward(mean(square(model->student(batch) - model->teacher(batch))));
  const std::string mine = bits_of({student->a->weight.grad(), student->b->bias.grad()});
  for (const std::string& theirs : group->all_gather_text(mine)) {
    if (theirs != mine) return "the gradients differ between the ranks";
  }
  // They are the mean of the gradients that each rank computes alone.
  TwoLayers alone;
  alone->load_state_dict(student->state_dict());
  mean(square(alone(batch) - teacher(batch))).backward();
  const Tensor expected = fabric.all_reduce(alone->a->weight.grad());
  return mechanisms::compare(mechanisms::values_of({student->a->weight.grad()}), mechanisms::values_of({expected}),
                             1e-6);
}
const AddRankCase add_submodule("the gradients of a submodule that is called round the wrapper are reduced",
                                &reduces_a_submodule, everywhere({2}));

std::string accumulates(const ProcessGroupPtr& group) {
  Fabric fabric(cpu(), group);
  manual_seed(1);
  auto model = fabric.setup(TwoLayers());
  const Tensor batch = ones({2, 4}) * static_cast<double>(group->rank() + 1);
  const auto differ = [&] {
    const Tensor own = model->a->weight.grad();
    const Tensor gathered = fabric.all_gather(own);
    return !eq(gathered, own.unsqueeze(0)).to(kInt64).sum().item<int64_t>() ||
           eq(gathered, own.unsqueeze(0)).to(kInt64).sum().item<int64_t>() != gathered.numel();
  };
  {
    const auto local = fabric.no_backward_sync(model);
    fabric.backward(loss_of(model(batch)));
    if (!differ()) return "gradients were reduced under no_backward_sync";
  }
  {
    const auto off = fabric.no_backward_sync(model, false);
    fabric.backward(loss_of(model(batch)));
  }
  return differ() ? "gradients were not reduced under no_backward_sync(enabled = false)" : "";
}
const AddRankCase add_accumulates("no_backward_sync keeps gradients local, and enabled = false does not", &accumulates,
                                  everywhere({2}));

std::string shares_examples(const ProcessGroupPtr& group) {
  Fabric fabric(cpu(), group);
  const auto dataset = std::make_shared<data::TensorDataset>(arange(0, 12));
  struct Evens : data::Sampler {
    std::vector<int64_t> indices() const override { return {0, 2, 4, 6, 8, 10}; }
    int64_t size() const noexcept override { return 6; }
  };
  auto [plain, own, distributed] = fabric.setup_dataloaders(
      data::DataLoader(dataset, {.batch_size = 2}),
      data::DataLoader(dataset, {.batch_size = 3, .sampler = std::make_shared<Evens>()}),
      data::DataLoader(dataset, {.batch_size = 12,
                                 .sampler = std::make_shared<dist::DistributedSampler>(
                                     12, 0, 2, dist::DistributedSamplerOptions{.shuffle = false})}));
  const auto seen = [](auto& loader) {
    std::vector<int64_t> all;
    for (const data::Example& batch : loader) {
      const auto values = batch.data.template to_vector<int64_t>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  std::vector<int64_t> every, evens;
  for (int64_t i = group->rank(); i < 12; i += group->size())
    every.push_back(i);
  for (int64_t i = group->rank(); i < 6; i += group->size())
    evens.push_back(2 * i);
  if (seen(plain) != every) return "other examples than every world_size-th";
  if (plain->size() != 12 / group->size() / 2) return fmt::format("{} batches", plain->size());
  if (seen(own) != evens) return "other examples than every world_size-th of the user's sampler";
  if (seen(distributed) != std::vector<int64_t>{0, 2, 4, 6, 8, 10}) return "a distributed sampler was replaced";
  return "";
}
const AddRankCase add_shares("each rank gets its part of the examples, once", &shares_examples, everywhere({2, 3}));

std::string exchanges(const ProcessGroupPtr& group) {
  Fabric fabric(cpu(), group);
  const int rank = group->rank(), ranks = group->size();
  const Tensor own = tensor<float>({static_cast<float>(rank), 1});
  const Tensor mean = fabric.all_reduce(own);
  if (mean.to_vector<double>() != std::vector<double>{(ranks - 1) / 2.0, 1}) return "all_reduce is not the mean";
  if (own.to_vector<int>()[0] != rank) return "all_reduce has changed its argument";
  if (fabric.all_reduce(rank + 1.0, dist::ReduceOp::Max) != ranks) return "all_reduce of a number is not the largest";
  const Tensor all = fabric.all_gather(own.unsqueeze(0));
  if (all.sizes() != Shape{ranks, 1, 2}) return "all_gather gives " + describe(all);
  for (int r = 0; r < ranks; ++r)
    if (all.to_vector<int>()[static_cast<size_t>(2 * r)] != r) return "all_gather is out of order";
  const int last = ranks - 1;
  if (fabric.broadcast(own, last).to_vector<int>()[0] != last) return "broadcast is not that of the last rank";
  if (fabric.broadcast("rank " + std::to_string(rank), last) != "rank " + std::to_string(last)) return "another text";
  if (const auto wrong =
          expect_error<ValueError>([&] { fabric.broadcast(std::string("x"), ranks); }, {"there is no rank"});
      !wrong.empty())
    return wrong;
  fabric.barrier();
  return "";
}
const AddRankCase add_exchanges("all_reduce, all_gather and broadcast give what they say", &exchanges,
                                everywhere({2, 3}));

// Trains, optionally from and to a checkpoint file. Returns the bits of the weights and of the loss scale.
std::string trained(Fabric& fabric, const std::string& from, const std::string& to, int steps) {
  manual_seed(2);
  TwoLayers net;
  optim::Adam adam(net->parameters(), {.lr = 0.01});
  auto [model, optimizer] = fabric.setup(net, adam);
  auto loader = fabric.setup_dataloaders(data::DataLoader(examples(), {.batch_size = 3, .shuffle = true}));
  optim::Checkpoint checkpoint = fabric.checkpoint();
  checkpoint.module("model", *model).optimizer("adam", *optimizer);
  checkpoint.part(
      "data", [&] { return loader->state_dict(); }, [&](const auto& state) { loader->load_state_dict(state); });
  if (!from.empty()) fabric.load(from, checkpoint);
  int taken = 0;
  for (uint64_t epoch = loader->epoch(); taken < steps; ++epoch) {
    loader->set_epoch(epoch);
    for (const data::Example& batch : loader) {
      optimizer.zero_grad();
      fabric.backward(loss_of(model(batch.data)));
      optimizer.step();
      if (++taken == steps) break;
    }
  }
  if (!to.empty()) fabric.save(to, checkpoint);
  return bits_of(net->parameters()) + std::to_string(fabric.scaler().get_scale());
}

void check_files(const std::string& backend, int ranks) {
  const TemporaryFolder folder;
  expect_well(backend, ranks, [&folder](const ProcessGroupPtr& group) -> std::string {
    dist::FabricOptions options = cpu("16-mixed");
    options.scaler.growth_interval = 4;
    Fabric whole(options, group), first(options, group), second(options, group);
    const std::string expected = trained(whole, "", "", 9);
    trained(first, "", folder / "half", 5);
    if (trained(second, folder / "half", "", 4) != expected) return "a resumed training has other weights";
    // Every rank learns that a file could not be written or read.
    optim::Checkpoint checkpoint = whole.checkpoint();
    const auto wrong = expect_error<IoError>([&] { whole.save(folder / "none/file", checkpoint); }, {"none/file"});
    if (!wrong.empty()) return "save: " + wrong;
    const std::string own = group->rank() == 1 ? folder / "missing" : folder / "half";
    int64_t number = 0;
    optim::Checkpoint other;
    other.number("step", number);
    Fabric third(cpu(), group);
    third.save(folder / "number", other);
    const std::string path = group->rank() == 1 ? folder / "missing" : folder / "number";
    const std::string said = group->rank() == 1 ? "cannot open" : "rank 1 could not read";
    const auto wrong_load = expect_error<IoError>([&] { third.load(path, other); }, {said});
    return wrong_load.empty() ? "" : "load: " + wrong_load;
  });
}
const AddRankCase add_files("a training is saved and resumed to the bit; a failure on one rank is one on all",
                            &check_files, everywhere({2}));

// A loader on one rank, whose batches are those of all ranks together, resumes where the loaders of several ranks were.
std::string on_one_rank(const ProcessGroupPtr& group) {
  const int ranks = group->size();
  Fabric many(cpu(), group), one(cpu(), dist::make_thread_groups(1).front());
  const auto loader_on = [](Fabric& fabric, int64_t batch) {
    return fabric.setup_dataloaders(
        data::DataLoader(examples(), {.batch_size = batch, .shuffle = true, .seed = 3, .drop_last = true}));
  };
  auto part = loader_on(many, 3), whole = loader_on(one, 3 * ranks);
  auto batch = part.begin();
  whole->load_state_dict(part->state_dict());
  ++batch;
  const Tensor mine = whole.begin()->data.slice(0, group->rank(), 3 * ranks, ranks).contiguous();
  return bits_of({mine}) == bits_of({batch->data.contiguous()}) ? "" : "the next batch has other examples";
}
const AddRankCase add_one_rank("a loader's position on several ranks is known again on one", &on_one_rank,
                               everywhere({2, 3}));

}  // namespace brigade::test::fabric_cases
