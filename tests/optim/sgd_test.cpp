// SGD against a plain loop; an optimizer over a parameter that several modules share.
#include <brigade/autograd/functional.h>
#include <brigade/nn/nn.h>

#include <optim/reference.h>

namespace brigade::test::sgd_test {

TEST_CASE("SGD agrees with its formula") {
  const std::vector<optim::SGDOptions> table = {
      {.lr = 0.1},
      {.lr = 0.1, .momentum = 0.9},
      {.lr = 0.1, .weight_decay = 0.05},
      {.lr = 0.1, .momentum = 0.8, .dampening = 0.3, .weight_decay = 0.01},
      {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true},
      {.lr = 0.1, .maximize = true},
      {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true, .maximize = true},
  };
  for (const auto& [dtype, tolerance] : kPrecisions) {
    for (size_t row = 0; row < table.size(); ++row) {
      CAPTURE(row);
      CAPTURE(name(dtype));
      const optim::SGDOptions& o = table[row];
      const Tensor p = parameter_of(dtype);
      optim::SGD optimizer({p}, o);
      std::vector<double> buffer(3);
      const auto formula = [&](size_t i, double value, double g, int t) {
        g = (o.maximize ? -g : g) + o.weight_decay * value;
        if (o.momentum != 0) {
          buffer[i] = t == 0 ? g : o.momentum * buffer[i] + (1 - o.dampening) * g;
          g = o.nesterov ? g + o.momentum * buffer[i] : buffer[i];
        }
        return value - o.lr * g;
      };
      compare(optimizer, p, formula, tolerance);
    }
  }
}

TEST_CASE("momentum switched on later starts with the gradient of that step") {
  const Tensor p = ones({1}, kFloat64).requires_grad_();
  optim::SGD optimizer({p}, {.lr = 1});
  const auto step = [&](double g) {
    p.set_grad(full({1}, g, kFloat64));
    const double before = p.to_vector<double>()[0];
    optimizer.step();
    return before - p.to_vector<double>()[0];
  };
  CHECK(step(2) == 2);
  optimizer.options().momentum = 0.5;
  CHECK(step(4) == 4);
  CHECK(step(1) == 3);
}

TEST_CASE("SGD refuses bad options with PyTorch's words") {
  const Tensor p = parameter_of(kFloat64);
  CHECK_THROWS_WITH_AS(optim::SGD({p}, {.lr = -1}), "Invalid learning rate: -1", ValueError);
  CHECK_THROWS_WITH_AS(optim::SGD({p}, {.lr = NAN}), "Invalid learning rate: nan", ValueError);
  CHECK_THROWS_WITH_AS(optim::SGD({p}, {.momentum = -0.5}), "Invalid momentum value: -0.5", ValueError);
  CHECK_THROWS_WITH_AS(optim::SGD({p}, {.weight_decay = -1e-5}), "Invalid weight_decay value: -1e-05", ValueError);
  const char* nesterov = "Nesterov momentum requires a momentum and zero dampening";
  CHECK_THROWS_WITH_AS(optim::SGD({p}, {.nesterov = true}), nesterov, ValueError);
  CHECK_THROWS_WITH_AS(optim::SGD({p}, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}), nesterov, ValueError);
}

// Parameter k starts as 0.3 sin(0.7 i + k); the weights of norms start as that plus 1.
void fill(nn::Module& module) {
  double k = 0;
  for (const auto& [name, parameter] : module.named_parameters()) {
    const bool norm = name.find("ln_") != std::string::npos && name.ends_with("weight");
    std::vector<double> values;
    for (int64_t i = 0; i < parameter.numel(); ++i)
      values.push_back(0.3 * std::sin(0.7 * static_cast<double>(i) + k) + (norm ? 1 : 0));
    parameter.detach().copy_(tensor(values, parameter.sizes()));
    ++k;
  }
}

TEST_CASE("ten AdamW steps of a GPT whose head shares the table of tokens have PyTorch's losses") {
  nn::GPT model({.vocab_size = 7, .block_size = 5, .n_layer = 2, .n_head = 2, .n_embd = 4, .dtype = kFloat64});
  fill(*model);
  optim::AdamW optimizer(model->parameters(), {.lr = 0.01});
  CHECK(optimizer.parameters().size() == 28);
  const Tensor tokens = tensor(std::vector<int64_t>{0, 3, 6, 1, 2, 2, 5, 4}, {2, 4});
  const Tensor targets = tensor(std::vector<int64_t>{3, 6, 1, 0, 2, 5, 4, 4}, {8});
  for (const double expected :
       {2.254804754366756, 2.135717153583658, 2.049761509868917, 1.990003900579705, 1.9488043456362745,
        1.9177211684522084, 1.8888704301925583, 1.857320665235624, 1.8210190554860166, 1.7788715044386143}) {
    optimizer.zero_grad();
    const Tensor loss = cross_entropy(model(tokens).reshape({8, 7}), targets);
    CHECK(loss.item() == doctest::Approx(expected).epsilon(1e-11));
    loss.backward();
    optimizer.step();
  }
  CHECK(model->lm_head->weight.is_same(model->wte->weight));
  CHECK(optimizer.state_dict().tensors.size() == 2 * 28);
}

}  // namespace brigade::test::sgd_test
