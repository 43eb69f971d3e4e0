// Replays recorded calls of PyTorch's GradScaler (make_traces.py) and compares results, gradients, weights, scale,
// growth tracker, and the words that errors begin with.
#include <brigade/amp/grad_scaler.h>
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>
#include <brigade/optim/sgd.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <bit>
#include <fstream>
#include <memory>
#include <set>

namespace brigade::test::traces_test {

using nlohmann::json;

double number(const json& value) {
  return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>();
}

std::vector<double> numbers(const json& list) {
  std::vector<double> result;
  for (const json& each : list)
    result.push_back(number(each));
  return result;
}

// Bitwise equality, except that all NaNs are equal.
bool same(double a, double b) { return (a != a && b != b) || std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

bool same(const Tensor& tensor, const json& expected) {
  if (expected.is_null() || !tensor.defined()) return expected.is_null() && !tensor.defined();
  const std::vector<double> values = tensor.to_vector<double>(), wanted = numbers(expected);
  return values.size() == wanted.size() &&
         std::equal(values.begin(), values.end(), wanted.begin(), [](double a, double b) { return same(a, b); });
}

class Replay {
 public:
  Replay(const json& sequence, bool is_capturable) : sequence_(sequence), is_capturable_(is_capturable) {
    for (const json& group : sequence["optimizers"]) {
      std::vector<Tensor>& parameters = parameters_.emplace_back();
      for (const json& parameter : group) {
        const DType dtype = parameter[1] == "float16" ? kFloat16 : kFloat32;
        parameters.push_back(ones({parameter[0].get<int64_t>()}, dtype).requires_grad_());
      }
      optimizers_.push_back(std::make_unique<optim::SGD>(parameters, optim::SGDOptions{.lr = 0.5}));
    }
  }

  // Describes the first call that differs, "" when none does.
  std::string run() {
    size_t position = 0;
    for (const json& call : sequence_["calls"]) {
      const std::string difference = play(call);
      if (!difference.empty()) return "call " + std::to_string(position) + " " + call.dump() + ": " + difference;
      ++position;
    }
    return "";
  }

 private:
  std::string play(const json& call) {
    std::string error;
    std::string difference;
    try {
      difference = call_of(call["call"], call.value("with", json()), call);
    } catch (const Error& raised) {
      error = raised.what();
    }
    const std::string expected = call.value("error", "");
    if (!error.starts_with(expected) || error.empty() != expected.empty()) return "error " + error;
    if (!difference.empty() || !scaler_) return difference;
    if (!same(scaler_->get_scale(), number(call["scale"]))) return "scale " + std::to_string(scaler_->get_scale());
    if (scaler_->growth_tracker() != call["tracker"].get<int64_t>())
      return "tracker " + std::to_string(scaler_->growth_tracker());
    return "";
  }

  std::string call_of(const std::string& name, const json& with, const json& call) {
    if (name == "new") return make();
    if (name == "scale") return scale(with, call["gives"]);
    if (name == "gradients") return set_gradients(with);
    if (name == "unscale_") {
      scaler_->unscale_(*optimizers_[with[0]]);
      return compare(with[0], call, [](const Tensor& parameter) { return parameter.grad(); });
    }
    if (name == "step") {
      scaler_->step(*optimizers_[with[0]]);
      return compare(with[0], call, [](const Tensor& parameter) { return parameter; });
    }
    if (name == "update") {
      with.is_null() ? scaler_->update() : scaler_->update(with[0].get<double>());
    } else if (name == "set_growth_factor") {
      scaler_->set_growth_factor(with[0]);
    } else if (name == "set_backoff_factor") {
      scaler_->set_backoff_factor(with[0]);
    } else if (name == "set_growth_interval") {
      scaler_->set_growth_interval(with[0]);
    } else if (name == "load_state_dict") {
      optim::OptimizerState state;
      for (const auto& [key, value] : with[0].items())
        state.numbers.emplace_back(key, number(value));
      scaler_->load_state_dict(state);
    } else if (name == "state_dict") {
      const auto state = scaler_->state_dict().numbers;
      if (state.size() != call["gives"].size()) return "entries " + std::to_string(state.size());
      for (const auto& [key, value] : state) {
        if (!call["gives"].contains(key) || !same(value, number(call["gives"][key]))) return key;
      }
    } else {
      return "unknown call";
    }
    return "";
  }

  std::string make() {
    const json& given = sequence_["options"];
    scaler_ = std::make_unique<amp::GradScaler>(
        amp::GradScalerOptions{.init_scale = given.value("init_scale", 65536.0),
                               .growth_factor = given.value("growth_factor", 2.0),
                               .backoff_factor = given.value("backoff_factor", 0.5),
                               .growth_interval = given.value("growth_interval", int64_t{2000}),
                               .enabled = given.value("enabled", true),
                               .fused_step = sequence_["kind"] == "fused",
                               .capturable = is_capturable_});
    return "";
  }

  std::string scale(const json& with, const json& expected) {
    std::vector<Tensor> losses;
    for (const json& value : with)
      losses.push_back(tensor({number(value)}, {}).to(kFloat32));
    const std::vector<Tensor> scaled =
        losses.size() == 1 ? std::vector{scaler_->scale(losses[0])} : scaler_->scale(losses);
    for (size_t i = 0; i < scaled.size(); ++i) {
      if (!same(scaled[i].item(), number(losses.size() == 1 ? expected : expected[i])))
        return "scaled to " + std::to_string(scaled[i].item());
    }
    return "";
  }

  std::string set_gradients(const json& with) {
    const std::vector<Tensor>& parameters = parameters_[with[0]];
    for (size_t i = 0; i < parameters.size(); ++i) {
      parameters[i].set_grad(with[1][i].is_null()
                                 ? Tensor()
                                 : tensor(numbers(with[1][i]), parameters[i].sizes()).to(parameters[i].dtype()));
    }
    return "";
  }

  template <class F>
  std::string compare(size_t which, const json& call, F&& of) {
    for (size_t i = 0; i < parameters_[which].size(); ++i) {
      const Tensor now = of(parameters_[which][i]);
      if (!same(now, call["leaves"][i])) return "tensor " + std::to_string(i) + " is " + to_string(now);
    }
    return "";
  }

  const json& sequence_;
  bool is_capturable_;
  std::vector<std::vector<Tensor>> parameters_;
  std::vector<std::unique_ptr<optim::SGD>> optimizers_;
  std::unique_ptr<amp::GradScaler> scaler_;
};

TEST_CASE("every call of more than 200 sequences does what PyTorch's does") {
  std::ifstream file(BRIGADE_TEST_DATA "/traces.json");
  REQUIRE(file);
  const json traces = json::parse(file);
  std::set<std::string> errors;
  size_t of_device = 0, fused = 0;
  for (const json& sequence : traces["sequences"]) {
    CHECK(Replay(sequence, false).run() == "");
    CHECK(Replay(sequence, true).run() == "");
    of_device += sequence["kind"] == "device";
    fused += sequence["kind"] == "fused";
    for (const json& call : sequence["calls"])
      if (call.contains("error")) errors.insert(call["error"]);
  }
  CHECK(traces["sequences"].size() > 200);
  CHECK(of_device > 50);
  CHECK(fused > 30);
  CHECK(errors.size() == 12);  // all that PyTorch has for dense gradients and scales given as numbers
}

}  // namespace brigade::test::traces_test
