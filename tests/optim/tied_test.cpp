// An optimizer over a parameter that several modules share.
#include <brigade/autograd/functional.h>
#include <brigade/nn/nn.h>
#include <optim/reference.h>

namespace brigade::test::tied_test {

namespace {

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

}  // namespace

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

}  // namespace brigade::test::tied_test
