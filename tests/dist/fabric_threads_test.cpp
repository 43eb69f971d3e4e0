// Fabric: its options, the ranks that it launches, and its behavior on one rank.
#include <brigade/autograd/functional.h>
#include <brigade/core/warning.h>
#include <brigade/dist/ddp/model_averaging.h>
#include <brigade/dist/fabric/fabric.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <core/error_of.h>
#include <core/temporary_folder.h>

#include <doctest/doctest.h>

#include <iostream>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>

namespace brigade::test::fabric_threads_test {
using dist::Fabric;
using test::error_of;

namespace {

const dist::FabricOptions kOneCpu{.accelerator = "cpu", .devices = 1};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("[002.2] [003.1] strategies and precisions have Lightning's names; a wrong one lists the right ones") {
  CHECK(dist::Strategy("ddp").options().find_unused_parameters == false);
  CHECK(dist::Strategy("ddp_find_unused_parameters_true").options().find_unused_parameters);
  CHECK(!dist::Strategy("ddp_find_unused_parameters_false").options().find_unused_parameters);
  CHECK(dist::Strategy("ddp_static_graph").options().static_graph);
  CHECK(dist::Strategy("ddp").wraps(1));
  CHECK(!dist::Strategy("auto").wraps(1));
  CHECK(dist::Strategy("auto").wraps(2));
  const dist::Strategy with_options = dist::DDPStrategy{.find_unused_parameters = true, .bucket_cap_mb = 50};
  CHECK(with_options.options().bucket_cap_mb == 50);
  CHECK(with_options.name() == "ddp");
  CHECK(with_options.wraps(1));
  CHECK(error_of([] { Fabric({.strategy = "fsdp"}); }) ==
        "unknown strategy 'fsdp'; known are ddp, ddp_find_unused_parameters_true, ddp_find_unused_parameters_false, "
        "ddp_static_graph, auto");
  CHECK(has(error_of([] { Fabric({.precision = "8-true"}); }),
            "unknown precision '8-true'; known are 32-true, 16-mixed, bf16-mixed, 16-true, bf16-true, 64-true"));
  CHECK(has(error_of([] { Fabric({.accelerator = "tpu"}); }),
            "unknown accelerator 'tpu'; known are auto, cpu, cuda, cuda:N, gpu"));
  CHECK(amp::find_precision("16").name == "16-mixed");
  CHECK(amp::find_precision("bf16").name == "bf16-mixed");
  CHECK(amp::find_precision("32").name == "32-true");
  CHECK(amp::find_precision("64").name == "64-true");
}

TEST_CASE("numbers of ranks that make no sense are refused, with what to do") {
  CHECK_THROWS_AS(Fabric({.accelerator = "cpu", .devices = 0}), ValueError);
  CHECK_THROWS_AS(Fabric({.accelerator = "cpu", .devices = -2}), ValueError);
  CHECK_THROWS_AS(Fabric({.accelerator = "cpu", .num_nodes = 0}), ValueError);
  CHECK(has(error_of([] { Fabric({.accelerator = "cpu", .devices = 1, .num_nodes = 2}); }),
            "num_nodes = 2, and no launcher has started this program: start it on each node, with brigade run"));
  Fabric two({.accelerator = "cpu", .devices = 2});
  CHECK(has(error_of([&] { two.barrier(); }), "To use Fabric with more than one device, you must call `.launch()`"));
  CHECK(has(error_of([&] { two.launch(); }), "give launch() the function that the ranks are to run"));
}

TEST_CASE("launch() runs the function on every rank, each with a Fabric of its own") {
  std::mutex mutex;
  std::set<int> ranks;
  Fabric fabric({.accelerator = "cpu", .devices = 3});
  fabric.launch([&](Fabric& rank) {
    const std::lock_guard lock(mutex);
    CHECK(rank.world_size() == 3);
    CHECK(rank.local_rank() == rank.global_rank());
    CHECK(rank.node_rank() == 0);
    CHECK(rank.is_global_zero() == (rank.global_rank() == 0));
    CHECK(rank.device() == Device());
    rank.rank_zero_only([&] { CHECK(rank.global_rank() == 0); });
    ranks.insert(rank.global_rank());
  });
  CHECK(ranks == std::set<int>{0, 1, 2});
}

TEST_CASE("launch() throws what the first rank that failed has thrown, and the others do not wait for it") {
  Fabric fabric({.accelerator = "cpu", .devices = 2});
  CHECK(has(error_of([&] {
              fabric.launch([](Fabric& rank) {
                if (rank.global_rank() == 1) throw IoError("no data on this rank");
                rank.barrier();
              });
            }),
            "no data on this rank"));
}

TEST_CASE("one rank needs no launch, and is not wrapped unless the strategy says so") {
  Fabric fabric(kOneCpu);
  CHECK(fabric.world_size() == 1);
  CHECK(fabric.all_reduce(ones({2}), dist::ReduceOp::Sum).to_vector<int>() == std::vector<int>{1, 1});
  CHECK(fabric.all_gather(ones({2})).sizes() == Shape{1, 2});
  int calls = 0;
  fabric.launch([&](Fabric& rank) {
    CHECK(&rank == &fabric);
    ++calls;
  });
  CHECK(calls == 1);
  CHECK(!fabric.setup(nn::Linear(2, 1)).ddp());
  dist::FabricOptions options = kOneCpu;
  options.strategy = "ddp";
  CHECK(Fabric(options).setup(nn::Linear(2, 1)).ddp());
}

TEST_CASE("a module computes in the precision, and gives float32 back") {
  struct DtypesImpl : nn::Module {
    nn::Linear fc{nullptr};
    DType seen = kBool, inside = kBool;
    DtypesImpl() { fc = register_module("fc", nn::Linear(3, 2)); }
    Tensor forward(const Tensor& x) {
      seen = x.dtype();
      const Tensor y = fc(x);
      inside = y.dtype();
      return y;
    }
  };
  using Dtypes = nn::ModuleHolder<DtypesImpl>;
  const struct {
    const char* precision;
    DType parameters, inside, result;
  } rows[] = {{"32-true", kFloat32, kFloat32, kFloat32},  {"64-true", kFloat64, kFloat64, kFloat64},
              {"16-true", kFloat16, kFloat16, kFloat32},  {"bf16-true", kBFloat16, kBFloat16, kFloat32},
              {"16-mixed", kFloat32, kFloat16, kFloat32}, {"bf16-mixed", kFloat32, kBFloat16, kFloat32}};
  for (const auto& row : rows) {
    CAPTURE(row.precision);
    Fabric fabric({.accelerator = "cpu", .devices = 1, .precision = row.precision});
    const auto model = fabric.setup(Dtypes());
    for (const DType given : {kFloat32, kFloat64}) {
      const Tensor y = model(ones({4, 3}, given));
      CHECK(model->seen == row.parameters);
      CHECK(model->inside == row.inside);
      CHECK(y.dtype() == row.result);
    }
    CHECK(model->fc->weight.dtype() == row.parameters);
    // Without the wrapper, a layer runs under autocast only inside of fabric.autocast().
    if (amp::find_precision(row.precision).autocast) {
      CHECK(model->fc(ones({1, 3})).dtype() == kFloat32);
      const auto region = fabric.autocast();
      CHECK(model->fc(ones({1, 3})).dtype() == row.inside);
    }
  }
}

TEST_CASE("what was set up once is not set up again, and what was not is not used") {
  Fabric fabric(kOneCpu);
  nn::Linear net(2, 1);
  optim::SGD sgd(net->parameters(), {.lr = 0.1});
  auto [model, optimizer] = fabric.setup(net, sgd);
  CHECK(has(error_of([&] { fabric.setup(net); }), "A model should be passed only once to the `setup` method"));
  CHECK(has(error_of([&] { fabric.setup_optimizers(sgd); }),
            "An optimizer should be passed only once to the `setup` method"));
  CHECK(has(error_of([&] { fabric.setup(nn::Linear{nullptr}); }), "the module to set up is empty"));
  CHECK(has(error_of([&] { fabric.clip_gradients(optimizer, {}); }), "You have to specify either `clip_val` or"));
  CHECK(has(error_of([&] { fabric.clip_gradients(optimizer, {.max_norm = 1, .clip_val = 1}); }),
            "Only one of `clip_val` or `max_norm` can be set"));
}

TEST_CASE("setup and setup_optimizers take any number of optimizers, and name the line of one that comes twice") {
  Fabric fabric(kOneCpu);
  std::vector<nn::Linear> nets;
  std::vector<std::unique_ptr<optim::SGD>> all;
  for (int i = 0; i < 9; ++i) {
    nets.emplace_back(1, 1);
    all.push_back(std::make_unique<optim::SGD>(nets.back()->parameters(), optim::SGDOptions{.lr = 0.1}));
  }
  optim::Adam adam({tensor<float>({1})}, {.lr = 0.1});
  auto [model, a, b, c, d, e] = fabric.setup(nets[0], *all[0], *all[1], adam, *all[2], *all[3]);
  auto [f, g, h, i] = fabric.setup_optimizers(*all[4], *all[5], *all[6], *all[7]);
  auto alone = fabric.setup_optimizers(*all[8]);
  CHECK(model.module().get() == nets[0].get());
  const std::vector<const optim::Optimizer*> found{&*a, &*b, &*c, &*d, &*e, &*f, &*g, &*h, &*i, &*alone};
  const std::vector<const optim::Optimizer*> wanted{all[0].get(), all[1].get(), &adam,        all[2].get(),
                                                    all[3].get(), all[4].get(), all[5].get(), all[6].get(),
                                                    all[7].get(), all[8].get()};
  CHECK(found == wanted);
  for (const std::string& twice : {error_of([&] { fabric.setup_optimizers(adam); }),
                                   error_of([&] { fabric.setup(nn::Linear(1, 1), *all[8], adam); })}) {
    CHECK(has(twice, "An optimizer should be passed only once to the `setup` method"));
    CHECK(has(twice, "fabric_threads_test.cpp:"));
  }
}

TEST_CASE(
    "an optimizer that holds no parameter of the module that it is set up with is reported, one that shares some is not") {
  Fabric fabric(kOneCpu);
  std::vector<std::string> said;
  const auto before = set_warning_handler([&](const Warning& warning) { said.push_back(warning.message); });
  nn::Linear net(2, 1), other(2, 1), third(2, 1);
  optim::SGD of_net({net->weight}, {.lr = 0.1}), of_other(other->parameters(), {.lr = 0.1});
  auto [model, first] = fabric.setup(net, of_net);
  CHECK(said.empty());
  optim::Adam of_third(third->parameters(), {.lr = 0.1});
  auto [trained, second, stray] = fabric.setup(third, of_third, of_other);
  set_warning_handler(before);
  REQUIRE(said.size() == 1);
  CHECK(has(said[0], "Not trained: Linear, set up with SGD at "));
  CHECK(has(said[0], "fabric_threads_test.cpp:"));
  CHECK(has(said[0], "holds none of its parameters"));
}

namespace {

enum class Averaged : uint8_t { ByNobody, BySetup, ByWrapper, ByHand, InOnePiece, ParameterByParameter, AtTheEnd };

// The warnings of five steps on two ranks; parameters are averaged after the fourth step, or at the end.
std::vector<std::string> said_of(Averaged by) {
  std::vector<std::string> said;
  std::mutex mutex;
  const auto before = set_warning_handler([&](const Warning& warning) {
    const std::lock_guard lock(mutex);
    said.push_back(warning.message);
  });
  Fabric(dist::FabricOptions{.accelerator = "cpu", .devices = 2}).launch([&](Fabric& fabric) {
    Fabric::seed_everything(1);
    nn::Linear net(2, 1);
    optim::SGD sgd(net->parameters(), {.lr = 0.1});
    std::optional<dist::FabricModule<nn::Linear>> model;
    std::optional<dist::DistributedDataParallel<nn::Linear>> ddp;
    if (by == Averaged::BySetup) model.emplace(fabric.setup_module(net));
    if (by == Averaged::ByWrapper) ddp.emplace(net, fabric.group());
    auto optimizer = fabric.setup_optimizers(sgd);
    for (int step = 0; step < 5; ++step) {
      const Tensor x = full({2, 2}, 1.0 + step + fabric.global_rank());
      optimizer.zero_grad();
      fabric.backward(mean(model ? (*model)(x) : ddp ? (*ddp)(x) : net(x)));
      for (const Tensor& parameter : net->parameters()) {
        if (by == Averaged::ByHand) fabric.group()->all_reduce(parameter.grad(), {.op = dist::ReduceOp::Avg})->wait();
      }
      optimizer.step();
      fabric.all_reduce(1.0);  // of a metric: averages no gradients
      if (step != 3) continue;
      if (by == Averaged::InOnePiece) dist::average_parameters(*fabric.group(), net->parameters());
      const NoGradGuard no_grad;
      for (const Tensor& parameter : net->parameters())
        if (by == Averaged::ParameterByParameter) parameter.copy_(fabric.all_reduce(parameter));
    }
    if (by == Averaged::AtTheEnd) dist::average_parameters(*fabric.group(), net->parameters());
  });
  set_warning_handler(before);
  return said;
}

}  // namespace

TEST_CASE(
    "an optimizer whose module was not set up is reported at the end, unless something averages for it, late as it may be") {
  for (const Averaged by : {Averaged::BySetup, Averaged::ByWrapper, Averaged::ByHand, Averaged::InOnePiece,
                            Averaged::ParameterByParameter, Averaged::AtTheEnd}) {
    CAPTURE(static_cast<int>(by));
    CHECK(said_of(by).empty());
  }
  const std::vector<std::string> said = said_of(Averaged::ByNobody);
  REQUIRE(said.size() == 1);
  CHECK(has(said[0], "Fabric: SGD.step() at "));
  CHECK(has(said[0], "fabric_threads_test.cpp:"));
  CHECK(has(said[0], "its module was not set up"));
  CHECK(has(said[0], "in all steps so far"));
}

TEST_CASE("an optimizer whose module was not set up is reported when the model is saved, and after a thousand steps") {
  for (const bool saves : {true, false}) {
    CAPTURE(saves);
    std::vector<std::string> said;
    std::mutex mutex;
    const auto before = set_warning_handler([&](const Warning& warning) {
      const std::lock_guard lock(mutex);
      said.push_back(warning.message);
    });
    size_t early = 0, late = 0;
    const TemporaryFolder folder;
    Fabric(dist::FabricOptions{.accelerator = "cpu", .devices = 2}).launch([&](Fabric& fabric) {
      Fabric::seed_everything(1);
      nn::Linear net(2, 1);
      optim::SGD sgd(net->parameters(), {.lr = 1e-4});
      auto optimizer = fabric.setup_optimizers(sgd);
      const auto train = [&](int steps) {
        for (int step = 0; step < steps; ++step) {
          optimizer.zero_grad();
          fabric.backward(mean(net(ones({2, 2}))));
          optimizer.step();
        }
        fabric.barrier();
      };
      train(saves ? 2 : 999);
      fabric.rank_zero_only([&] { early = said.size(); });
      fabric.barrier();
      if (saves) {
        optim::Checkpoint checkpoint = fabric.checkpoint();
        checkpoint.module("model", *net);
        fabric.save(folder / "model", checkpoint);
      } else {
        train(1);
      }
      fabric.rank_zero_only([&] { late = said.size(); });
      fabric.barrier();
    });
    set_warning_handler(before);
    CHECK(early == 0);
    CHECK(late == 1);
    CHECK(said.size() == 1);
  }
}

namespace {

struct HalvesImpl : nn::Module {
  nn::Linear fc{nullptr};
  HalvesImpl() { fc = register_module("fc", nn::Linear(2, 2)); }
  std::pair<Tensor, std::tuple<Tensor, int>> forward(const Tensor& x) {
    const Tensor y = fc(x);
    return {y, {y, static_cast<int>(y.dtype() == kBFloat16)}};
  }
};
BRIGADE_MODULE(Halves);

}  // namespace

TEST_CASE("in results that are pairs and tuples tensors become float32 as elsewhere") {
  Fabric fabric({.accelerator = "cpu", .devices = 1, .precision = "bf16-mixed"});
  auto model = fabric.setup(Halves());
  const auto [first, second] = model(ones({1, 2}));
  CHECK(first.dtype() == kFloat32);
  CHECK(std::get<0>(second).dtype() == kFloat32);
  CHECK(std::get<1>(second) == 1);
}

TEST_CASE("clip_gradients clips by norm or by value, of what the scaler has divided") {
  for (const char* precision : {"32-true", "16-mixed"}) {
    CAPTURE(precision);
    Fabric fabric({.accelerator = "cpu", .devices = 1, .precision = precision});
    const Tensor weight = tensor<float>({3, 4});
    weight.requires_grad_();
    optim::SGD sgd({weight}, {.lr = 1});
    auto optimizer = fabric.setup_optimizers(sgd);
    optimizer.zero_grad();
    fabric.backward((weight * tensor<float>({3, 4})).sum());
    CHECK(fabric.clip_gradients(optimizer, {.max_norm = 1}) == doctest::Approx(5));
    CHECK(weight.grad().to_vector<double>()[0] == doctest::Approx(0.6).epsilon(1e-5));
    CHECK(optimizer.step());
    optimizer.zero_grad();
    fabric.backward((weight * tensor<float>({3, -4})).sum());
    fabric.clip_gradients(optimizer, {.clip_val = 3.5});
    CHECK(weight.grad().to_vector<double>() == std::vector<double>{3, -3.5});
    CHECK(optimizer.step());
    // Non-finite gradients: with a scaler the step is skipped, without one clipping is an error.
    optimizer.zero_grad();
    fabric.backward((weight * tensor<float>({INFINITY, 1})).sum());
    const auto clip = [&] { fabric.clip_gradients(optimizer, {.max_norm = 1}); };
    if (fabric.precision().scales) {
      clip();
      CHECK(!optimizer.step());
    } else {
      CHECK_THROWS_AS(clip(), ValueError);
    }
  }
}

TEST_CASE("metrics go to all loggers as they come, as a line of JSON each") {
  const test::TemporaryFolder folder;
  dist::FabricOptions options = kOneCpu;
  options.loggers = {std::make_shared<dist::JsonLinesLogger>(folder / "metrics.jsonl")};
  Fabric fabric(options);
  fabric.log("loss", 0.5, 3);
  fabric.log_dict({{"accuracy", 0.25}, {"loss", INFINITY}});
  CHECK(test::read_bytes(folder / "metrics.jsonl") == "{\"loss\":0.5,\"step\":3}\n{\"accuracy\":0.25,\"loss\":null}\n");
  dist::JsonLinesLogger nowhere(folder / "none/metrics.jsonl");
  CHECK(has(error_of([&] { nowhere.log_metrics({{"loss", 1}}, 0); }), "cannot write " + folder / "none/metrics.jsonl"));
}

TEST_CASE("print() and log() speak from rank 0 alone") {
  const test::TemporaryFolder folder;
  std::ostringstream printed;
  std::streambuf* const before = std::cout.rdbuf(printed.rdbuf());
  Fabric fabric({.accelerator = "cpu",
                 .devices = 3,
                 .loggers = {std::make_shared<dist::JsonLinesLogger>(folder / "metrics.jsonl")}});
  fabric.launch([](Fabric& rank) {
    rank.print("rank " + std::to_string(rank.global_rank()) + " of " + std::to_string(rank.world_size()));
    rank.log("rank", rank.global_rank());
    rank.barrier();
  });
  std::cout.rdbuf(before);
  CHECK(printed.str() == "rank 0 of 3\n");
  CHECK(test::read_bytes(folder / "metrics.jsonl") == "{\"rank\":0.0}\n");
}

TEST_CASE("backward and manual_backward scale alike, and take the options of backward") {
  Fabric fabric({.accelerator = "cpu", .devices = 1, .precision = "16-mixed", .scaler = {.init_scale = 8}});
  const Tensor weight = tensor<float>({3});
  weight.requires_grad_();
  const Tensor loss = square(weight).sum();
  fabric.backward(loss, {.retain_graph = true});
  CHECK(weight.grad().item() == 8 * 6);
  fabric.manual_backward(loss);
  CHECK(weight.grad().item() == 2 * 8 * 6);
  CHECK_THROWS_AS(fabric.manual_backward(loss), AutogradError);
}

TEST_CASE("seed_everything seeds the generator of the rank") {
  CHECK(Fabric::seed_everything(5) == 5);
  const double first = rand({}).item();
  manual_seed(5);
  CHECK(rand({}).item() == first);
}

}  // namespace brigade::test::fabric_threads_test
