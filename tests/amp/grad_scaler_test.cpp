// GradScaler beyond PyTorch's calls: results of scale(), agreement of several ranks, checkpoints, and the words that
// errors add to PyTorch's.
#include <brigade/autograd/listener.h>
#include <brigade/core/device_runtime.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/checkpoint.h>

#include <amp/training.h>
#include <core/temporary_folder.h>

namespace brigade::test::grad_scaler_test {
using test::at;
using test::error_of;
using test::OneWeight;
using test::says_all;

TEST_CASE("scale() gives the dtype of a product with a float32 number, and any shape") {
  amp::GradScaler scaler({.init_scale = 1024});
  struct Case {
    Shape sizes;
    DType given, wanted;
  };
  for (const Case& c : {Case{{}, kFloat16, kFloat32}, Case{{}, kBFloat16, kFloat32}, Case{{}, kFloat64, kFloat64},
                        Case{{2, 3}, kFloat16, kFloat16}, Case{{2, 3}, kFloat32, kFloat32}}) {
    const Tensor loss = full(c.sizes, 3, c.given).requires_grad_();
    const Tensor scaled = scaler.scale(loss);
    CHECK(scaled.dtype() == c.wanted);
    CHECK(scaled.sizes() == c.sizes);
    CHECK(scaled.to_vector<double>().back() == 3072);
    scaled.sum().backward();
    CHECK(loss.grad().dtype() == c.given);
    CHECK(loss.grad().to_vector<double>().back() == 1024);
  }
  CHECK(says_all(error_of([&] { scaler.scale(Tensor()); }), {"outputs must be a Tensor or an iterable of Tensors"}));
  CHECK_THROWS_AS(scaler.scale(zeros({1}, kInt64)), DTypeError);
}

TEST_CASE("a scaled loss that was made before update() keeps its scale") {
  OneWeight model;
  amp::GradScaler scaler({.init_scale = 8});
  const Tensor scaled = scaler.scale(model.loss());
  scaler.update(16);
  scaled.backward();
  CHECK(model.gradient() == 8);
  CHECK(scaler.get_scale() == 16);
}

TEST_CASE("a scaler for a device that is not there is not enabled") {
  if (device_count(kCUDA) > 0) return;
  test::Warnings warnings;
  amp::GradScaler scaler({.device = kCUDA});
  CHECK_FALSE(scaler.is_enabled());
  REQUIRE(warnings.texts.size() == 1);
  CHECK(warnings.texts[0] == "GradScaler is enabled, but CUDA is not available.  Disabling.");
}

TEST_CASE("gradients of two dtypes are unscaled together, and float16 ones are refused by name") {
  const Tensor a = zeros({2}).requires_grad_(), b = zeros({2}, kFloat64).requires_grad_();
  optim::SGD optimizer({a, b}, {.lr = 1});
  amp::GradScaler scaler({.init_scale = 8});
  scaler.scale(a.sum().to(kFloat64) + b.sum()).backward();
  CHECK_FALSE(scaler.found_inf(optimizer).has_value());
  scaler.unscale_(optimizer);
  CHECK(scaler.found_inf(optimizer) == false);
  CHECK(a.grad().to_vector<double>() == std::vector<double>{1, 1});
  CHECK(b.grad().to_vector<double>() == std::vector<double>{1, 1});

  nn::Linear half(1, 1);
  half->to(kFloat16);
  optim::SGD of_half(half->parameters(), {.lr = 1});
  half->parameters()[0].set_grad(ones({1, 1}, kFloat16));
  CHECK(says_all(error_of([&] { scaler.unscale_(of_half); }),
                 {"Attempting to unscale FP16 gradients. ('weight' of SGD, which is float16 [1, 1]",
                  "keep the parameters in float32"}));
}

TEST_CASE("calls out of order are reported with the lines of both calls") {
  OneWeight model, idle;
  amp::GradScaler scaler({.init_scale = 8});
  scaler.scale(model.loss()).backward();
  scaler.unscale_(model.optimizer);
  unsigned line = __LINE__;
  CHECK(says_all(error_of([&] { scaler.unscale_(model.optimizer); }),
                 {"it was unscaled at " + at(line - 1), "update() has not been called yet"}));
  scaler.step(model.optimizer);
  line = __LINE__;
  CHECK(says_all(error_of([&] { scaler.step(model.optimizer); }), {"it has stepped at " + at(line - 1)}));
  CHECK(says_all(error_of([&] { scaler.unscale_(model.optimizer); }), {"it has stepped at " + at(line - 1)}));
  CHECK(says_all(error_of([&] { scaler.step(idle.optimizer); }),
                 {"(SGD with parameter 0, at ", "has reached its 1 parameters"}));
  scaler.update();
  line = __LINE__;
  CHECK(says_all(error_of([&] { scaler.update(); }), {"since update() at " + at(line - 1)}));
}

namespace {

// Simulates another rank: gets on_update() at each step, as a reducer does.
struct OtherRank final : autograd::Listener {
  void on_plan(const autograd::Plan&) override {}
  void on_grad_ready(uint32_t, bool) override {}
  void on_finish(const autograd::Plan&) override {}
  void on_error(const autograd::Plan*, std::exception_ptr) noexcept override {}
  void on_update(const autograd::Update& update) override {
    asked.push_back({update.optimizer, update.scaled->found_inf, update.moves});
    update.scaled->found_inf = update.scaled->found_inf || says;
    update.scaled->is_agreed = true;
  }
  bool says = true;
  struct Asked {
    const void* optimizer;
    bool found, moves;
    bool operator==(const Asked&) const = default;
  };
  std::vector<Asked> asked;
};

}  // namespace

TEST_CASE("what another rank has found is asked for once for each optimizer, and decides") {
  OneWeight first, second;
  amp::GradScaler scaler({.init_scale = 8});
  const auto other = std::make_shared<OtherRank>();
  autograd::add_listener(other);
  using Asked = OtherRank::Asked;
  scaler.scale(first.loss() + second.loss(INFINITY)).backward();
  scaler.unscale_(first.optimizer);
  CHECK_FALSE(scaler.step(second.optimizer));
  CHECK_FALSE(scaler.step(first.optimizer));
  CHECK(scaler.found_inf(first.optimizer) == true);
  scaler.update();
  CHECK(other->asked == std::vector<Asked>{{&second.optimizer, true, true}, {&first.optimizer, false, true}});
  CHECK(first.value() == 0);
  CHECK(first.optimizer.steps_skipped() == 1);
  CHECK(scaler.get_scale() == 4);

  other->says = false;
  other->asked.clear();
  first.optimizer.zero_grad();
  scaler.scale(first.loss()).backward();
  scaler.unscale_(first.optimizer);
  scaler.update();  // no step was taken: update() asks
  CHECK(other->asked == std::vector<Asked>{{&first.optimizer, false, false}});
  CHECK(scaler.growth_tracker() == 1);
}

TEST_CASE("a checkpoint carries the scaler, and one that does not fit changes nothing") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "scaler";
  const auto with = [](optim::Checkpoint& checkpoint, amp::GradScaler& scaler) -> optim::Checkpoint& {
    return checkpoint.part(
        "scaler", [&] { return scaler.state_dict(); }, [&](const auto& state) { scaler.load_state_dict(state); });
  };
  amp::GradScaler saved({.init_scale = 8, .growth_interval = 5});
  OneWeight model;
  saved.scale(model.loss()).backward();
  saved.step(model.optimizer);
  saved.update();
  optim::Checkpoint save;
  with(save, saved).save(path);
  amp::GradScaler loaded;
  optim::Checkpoint load;
  with(load, loaded).load(path);
  CHECK(loaded.get_scale() == 8);
  CHECK(loaded.growth_tracker() == 1);
  CHECK(loaded.get_growth_interval() == 5);

  optim::OptimizerState state = loaded.state_dict();
  state.numbers.back().first = "growth";
  CHECK(says_all(error_of([&] { loaded.load_state_dict(state); }), {"'_growth_tracker' is missing"}));
  state = loaded.state_dict();
  state.numbers[0].second = 2;
  state.numbers.emplace_back("more", 1);
  CHECK(says_all(error_of([&] { loaded.load_state_dict(state); }), {"'more' is not known"}));
  CHECK(loaded.get_scale() == 8);
}

}  // namespace brigade::test::grad_scaler_test
