// A custom training loop with Fabric: a dataset, a loader that gives each rank its part, gradient accumulation over two
// batches, a learning rate schedule, an evaluation after each epoch, and a checkpoint from which training resumes in
// the middle of an epoch. The training is interrupted here and resumed; its weights are bitwise equal to those of an
// uninterrupted training.
#include <brigade/brigade.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

using namespace brigade;

// Points in the plane, and whether they are inside a circle. Example `index` is the same on every access.
struct Circle : data::Dataset<> {
  uint64_t seed;
  explicit Circle(uint64_t seed) : seed(seed) {}

  int64_t size() const override { return 320; }
  data::Example get(int64_t index) const override {
    RandomGenerator random(seed * 1000 + static_cast<uint64_t>(index));
    const Tensor point = randn({2}, kFloat32, &random);
    const bool is_inside = square(point).sum().item() < 1.4;
    return {point, scalar_tensor(is_inside ? 1 : 0, kInt64)};
  }
};

struct NetImpl : nn::Module {
  nn::Linear fc1{nullptr}, fc2{nullptr};
  NetImpl() {
    fc1 = register_module("fc1", nn::Linear(2, 32));
    fc2 = register_module("fc2", nn::Linear(32, 2));
  }
  Tensor forward(const Tensor& x) { return fc2(brigade::tanh(fc1(x))); }
};
BRIGADE_MODULE(Net);

struct Trained {
  double accuracy = 0;
  std::vector<float> weights;
};

// The fraction of examples that the network classifies correctly, over all ranks.
double evaluate(dist::Fabric& fabric, const dist::FabricModule<Net>& model,
                dist::FabricDataLoader<data::Example, data::Example>& loader) {
  const NoGradGuard no_grad;
  model->eval();
  double right = 0, all = 0;
  for (const data::Example& batch : loader) {
    right += eq(argmax(model(batch.data), 1), batch.target).sum().item();
    all += static_cast<double>(batch.target.numel());
  }
  model->train();
  return fabric.all_reduce(right, dist::ReduceOp::Sum) / fabric.all_reduce(all, dist::ReduceOp::Sum);
}

// What each rank runs. Resumes from the file if it exists; `stop`: returns after this many batches, as if killed.
Trained train(dist::Fabric& fabric, const std::string& path, int64_t stop) {
  constexpr int kEpochs = 20, kParts = 2;
  dist::Fabric::seed_everything(1);
  Net net;
  optim::AdamW adamw(net->parameters(), {.lr = 0.03});
  optim::CosineAnnealingLR schedule(adamw, kEpochs);
  auto [model, optimizer] = fabric.setup(net, adamw);
  auto [loader, held_out] = fabric.setup_dataloaders(
      data::DataLoader(std::make_shared<Circle>(1), {.batch_size = 16, .shuffle = true, .seed = 1, .num_workers = 2}),
      data::DataLoader(std::make_shared<Circle>(2), {.batch_size = 40}));

  int64_t batches = 0;
  optim::Checkpoint checkpoint = fabric.checkpoint();
  checkpoint.module("model", *net).optimizer("adamw", adamw).scheduler("schedule", schedule).number("batches", batches);
  data::DataLoaderBase& position = *loader;
  checkpoint.part(
      "data", [&] { return position.state_dict(); }, [&](const auto& state) { position.load_state_dict(state); });
  if (std::filesystem::exists(path)) fabric.load(path, checkpoint);

  Trained result;
  for (uint64_t epoch = loader->epoch(); epoch < kEpochs; ++epoch) {
    loader->set_epoch(epoch);  // keeps the loaded position within the epoch
    for (const data::Example& batch : loader) {
      const bool gathers = batches % kParts + 1 < kParts;
      const auto local = fabric.no_backward_sync(model, gathers);  // a scope guard
      const Tensor loss = cross_entropy(model(batch.data), batch.target);
      fabric.backward(loss / static_cast<double>(kParts));
      if (!gathers) {
        fabric.clip_gradients(optimizer, {.max_norm = 1});
        optimizer.step();
        optimizer.zero_grad();
      }
      if (++batches != stop) continue;
      fabric.save(path, checkpoint);
      return result;
    }
    schedule.step();
    result.accuracy = evaluate(fabric, model, held_out);
    fabric.log("accuracy", result.accuracy, static_cast<int64_t>(epoch));
  }
  result.weights = net->fc1->weight.to_vector<float>();
  return result;
}

int main() {
  const std::string folder = (std::filesystem::temp_directory_path() / "brigade-fabric-example").string();
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  // Trains on two ranks, which are threads.
  const auto run = [&](const std::string& name, int64_t stop) {
    dist::Fabric fabric({.accelerator = "cpu",
                         .devices = 2,
                         .strategy = "ddp",
                         .precision = "bf16-mixed",
                         .loggers = {std::make_shared<dist::JsonLinesLogger>(folder + "/" + name + ".jsonl")}});
    Trained of_rank_0;
    fabric.launch([&](dist::Fabric& rank) {
      const Trained own = train(rank, folder + "/" + name + ".checkpoint", stop);
      rank.rank_zero_only([&] { of_rank_0 = own; });
    });
    return of_rank_0;
  };
  const Trained whole = run("whole", -1);
  std::printf("accuracy after 20 epochs: %.3f\n", whole.accuracy);
  run("interrupted", 74);  // four of ten batches into the eighth epoch
  const Trained resumed = run("interrupted", -1);
  const bool equal = resumed.weights == whole.weights;
  std::printf("interrupted in the eighth: weights %s\n", equal ? "equal to the bit" : "DIFFERENT");
  std::filesystem::remove_all(folder);
  return equal && whole.accuracy > 0.9 ? 0 : 1;
}
