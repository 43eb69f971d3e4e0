#include <brigade/autograd/tape_query.h>
#include <nn/models.h>

#include <doctest/doctest.h>

namespace brigade::test::state_dict_test {

TEST_CASE("state_dict lists parameters and buffers, detached and sharing memory") {
  Net net;
  const auto state = net->state_dict();
  CHECK(names_of(state) == std::vector<std::string>{"scale", "steps", "blocks.0.fc.weight", "blocks.0.fc.bias",
                                                    "blocks.1.fc.weight", "blocks.1.fc.bias", "head.weight"});
  CHECK_FALSE(state[0].second.requires_grad());
  state[0].second.fill_(7);
  CHECK(floats(net->scale) == std::vector<float>{7});
}

TEST_CASE("a state goes round") {
  manual_seed(1);
  Net a;
  a->steps.fill_(5);
  manual_seed(2);
  Net b;
  REQUIRE(floats(b->head->weight) != floats(a->head->weight));
  const uint32_t version = b->head->weight.version();
  const auto keys = b->load_state_dict(a->state_dict());
  CHECK(keys.missing.empty());
  CHECK(keys.unexpected.empty());
  for (size_t i = 0; i < a->parameters().size(); ++i)
    CHECK(floats(b->parameters()[i]) == floats(a->parameters()[i]));
  CHECK(b->steps.item<int64_t>() == 5);
  CHECK(b->head->weight.version() > version);
  CHECK(b->head->weight.requires_grad());
  CHECK(b->head->weight.is_leaf());
  // Values are converted to the dtype of the parameter.
  b->to(kFloat64);
  b->load_state_dict(a->state_dict());
  CHECK(floats(b->head->weight) == floats(a->head->weight));
}

TEST_CASE("load_state_dict names everything that does not fit in one error, and changes nothing then") {
  Net net;
  auto state = Net()->state_dict();
  state[0].first = "other";
  state[2].second = zeros({4, 4});
  state[3].second = Tensor();
  state.pop_back();
  const auto before = floats(net->head->weight);
  const auto blocks = floats((*net->blocks)[1]->fc->weight);
  std::string text;
  try {
    net->load_state_dict(state);
  } catch (const ValueError& error) {
    text = error.what();
  }
  for (const char* words :
       {"Error(s) in loading state_dict for Net:", "Missing key(s) in state_dict: \"scale\", \"head.weight\"",
        "Unexpected key(s) in state_dict: \"other\"",
        "size mismatch for blocks.0.fc.weight: copying a param with shape [4, 4] from checkpoint, the shape in current "
        "model is [3, 3]",
        "undefined value for blocks.0.fc.bias"}) {
    CAPTURE(words);
    CHECK(text.find(words) != std::string::npos);
  }
  CHECK(floats(net->head->weight) == before);
  CHECK(floats((*net->blocks)[1]->fc->weight) == blocks);
}

TEST_CASE("without strict, names may differ but not shapes") {
  Net from, to;
  auto state = from->state_dict();
  state[0].first = "other";
  const auto keys = to->load_state_dict(state, false);
  CHECK(keys.missing == std::vector<std::string>{"scale"});
  CHECK(keys.unexpected == std::vector<std::string>{"other"});
  CHECK(floats(to->head->weight) == floats(from->head->weight));
  state[2].second = zeros({1});
  CHECK_THROWS_AS(to->load_state_dict(state, false), ValueError);
}

TEST_CASE("saving and loading are no use of the parameters: a diagnosis must not blame them") {
  Net net;
  nn::Linear unused(3, 1);
  unused->weight.set_grad(ones({1, 3}));
  autograd::Tape::enable();
  unused->load_state_dict(unused->state_dict());
  CHECK(autograd::Tape::current()->records().empty());
  unused->zero_grad(false);
  CHECK(autograd::Tape::current()->records().empty());
  const Tensor loss = net(ones({1, 3})).sum();
  const auto fate =
      autograd::BackwardOnTape(*autograd::Tape::current(), std::span(&loss, 1)).trace(unused->weight.id());
  CHECK(fate.kind == autograd::Fate::Kind::NotUsed);
  autograd::Tape::disable();
}

}  // namespace brigade::test::state_dict_test
