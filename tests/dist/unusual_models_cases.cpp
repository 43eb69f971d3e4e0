// Unusual models, and unusual ways to wrap them.
#include "mechanisms_net.h"
#include "rank_case.h"

namespace brigade::test::unusual_models_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

void check_several_wrappers(const std::string& backend, int ranks) {
  // Two wrapped modules in one loss.
  manual_seed(1);
  Net first;
  Net second;
  std::vector<Tensor> both = first->parameters();
  for (const Tensor& parameter : second->parameters())
    both.push_back(parameter);
  optim::SGD plain(both, {.lr = 0.1, .momentum = 0.9});
  for (int s = 0; s < kSteps; ++s) {
    plain.zero_grad();
    const Tensor x = whole_batch(ranks, s);
    (loss_of(first(x)) + mean(abs(second(x)))).backward();
    plain.step();
  }
  const Values expected = values_of(both);
  expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
    manual_seed(1);
    Net a;
    Net b;
    Ddp ddp_a(a, group);
    Ddp ddp_b(b, group, {.find_unused_parameters = true});
    std::vector<Tensor> parameters = a->parameters();
    for (const Tensor& parameter : b->parameters())
      parameters.push_back(parameter);
    optim::SGD optimizer(parameters, {.lr = 0.1, .momentum = 0.9});
    for (int s = 0; s < kSteps; ++s) {
      optimizer.zero_grad();
      const Tensor x = batch_of(group->rank(), s);
      (loss_of(ddp_a(x)) + mean(abs(ddp_b(x)))).backward();
      optimizer.step();
    }
    return compare(values_of(parameters), expected);
  });
  // A GAN in one strict wrapper: expect() declares which parameters each backward reaches.
  struct GanImpl : nn::Module {
    nn::Linear g{nullptr}, d{nullptr};
    GanImpl() {
      g = register_module("g", nn::Linear(4, 4));
      d = register_module("d", nn::Linear(4, 1));
      to(kFloat64);
    }
    Tensor forward(const Tensor& z, bool detach) {
      const Tensor fake = brigade::tanh(g(z));
      return d(detach ? fake.detach() : fake);
    }
  };
  class Gan : public nn::ModuleHolder<GanImpl> {
   public:
    using nn::ModuleHolder<GanImpl>::ModuleHolder;
  };
  const auto play = [](auto& forward, Gan& net, const Tensor& z,
                       const std::function<void(const Tensor&, bool)>& backward) {
    optim::SGD for_d(net->d->parameters(), {.lr = 0.1});
    optim::SGD for_g(net->g->parameters(), {.lr = 0.1});
    net->zero_grad();
    const Tensor of_fake = forward(z, true);
    backward(binary_cross_entropy_with_logits(of_fake, zeros_like(of_fake)), true);
    for_d.step();
    net->zero_grad();
    const Tensor again = forward(z, false);
    backward(binary_cross_entropy_with_logits(again, ones_like(again)), false);
    for_g.step();
  };
  manual_seed(1);
  Gan alone;
  for (int s = 0; s < kSteps; ++s)
    play(alone, alone, whole_batch(ranks, s), [](const Tensor& loss, bool) { loss.backward(); });
  const Values gan_expected = values_of(alone->parameters());
  expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
    manual_seed(1);
    Gan net;
    dist::DistributedDataParallel<Gan> ddp(net, group);
    for (int s = 0; s < kSteps; ++s) {
      play(ddp, net, batch_of(group->rank(), s), [&](const Tensor& loss, bool of_d) {
        const auto guard = ddp.expect(of_d ? net->d->parameters() : net->g->parameters());
        loss.backward();
      });
    }
    return compare(values_of(net->parameters()), gan_expected);
  });
}
const AddRankCase add_several_wrappers("two wrappers in one loss; a GAN under one wrapper", &check_several_wrappers);

void check_unusual_models(const std::string& backend, int ranks) {
  // A shared layer, a frozen one, two dtypes, a weight used outside of forward.
  struct OddImpl : nn::Module {
    nn::Linear shared{nullptr}, frozen{nullptr}, small{nullptr};
    OddImpl() {
      shared = register_module("shared", nn::Linear(4, 4));
      frozen = register_module("frozen", nn::Linear(4, 4));
      to(kFloat64);
      small = register_module("small", nn::Linear(4, 2));  // float32
      frozen->requires_grad_(false);
    }
    Tensor forward(const Tensor& x) {
      const Tensor y = shared(brigade::tanh(frozen(brigade::tanh(shared(x)))));
      return small(y.to(kFloat32));
    }
  };
  class Odd : public nn::ModuleHolder<OddImpl> {
   public:
    using nn::ModuleHolder<OddImpl>::ModuleHolder;
  };
  const auto loss = [](const Tensor& out, Odd& net) {
    return mean(square(out)) + mean(square(net->shared->weight)).to(kFloat32);
  };
  manual_seed(1);
  Odd one;
  const auto trainable = [](Odd& net) {
    std::vector<Tensor> parameters = net->shared->parameters();
    for (const Tensor& parameter : net->small->parameters())
      parameters.push_back(parameter);
    return parameters;
  };
  optim::SGD plain(trainable(one), {.lr = 0.1});
  for (int s = 0; s < kSteps; ++s) {
    plain.zero_grad();
    loss(one(whole_batch(ranks, s)), one).backward();
    plain.step();
  }
  const Values expected = values_of(one->parameters());
  expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
    manual_seed(1);
    Odd net;
    dist::DistributedDataParallel<Odd> ddp(net, group);
    if (ddp.reducer().buckets().layouts().size() != 2) return "one bucket per dtype";
    optim::SGD optimizer(trainable(net), {.lr = 0.1});
    for (int s = 0; s < kSteps; ++s) {
      optimizer.zero_grad();
      loss(ddp(batch_of(group->rank(), s)), net).backward();
      optimizer.step();
    }
    return compare(values_of(net->parameters()), expected, 1e-6);
  });
}
const AddRankCase add_unusual_models("shared, frozen and mixed-dtype parameters", &check_unusual_models);

void check_embedding(const std::string& backend, int ranks) {
  // Rows that only one rank looks up, rows that no rank does, and a weight that is also the output layer.
  struct WordsImpl : nn::Module {
    nn::Embedding words{nullptr};
    WordsImpl() {
      words = register_module("words", nn::Embedding({.num_embeddings = 12, .embedding_dim = 4, .padding_idx = 0}));
      to(kFloat64);
    }
    Tensor forward(const Tensor& indices) { return linear(brigade::tanh(words(indices)), words->weight); }
  };
  class Words : public nn::ModuleHolder<WordsImpl> {
   public:
    using nn::ModuleHolder<WordsImpl>::ModuleHolder;
  };
  const auto indices_of = [](int rank, int step) {
    return tensor(std::vector<int64_t>{0, 1 + rank, 1, 5 + step, 1}, {5});
  };
  manual_seed(1);
  Words one;
  optim::SGD plain(one->parameters(), {.lr = 0.1});
  for (int s = 0; s < kSteps; ++s) {
    plain.zero_grad();
    std::vector<Tensor> all;
    for (int r = 0; r < ranks; ++r)
      all.push_back(indices_of(r, s));
    loss_of(one(cat(all))).backward();
    plain.step();
  }
  const Values expected = values_of(one->parameters());
  for (const bool views : {true, false}) {
    CAPTURE(views);
    expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
      manual_seed(1);
      Words net;
      dist::DistributedDataParallel<Words> ddp(net, group, {.gradient_as_bucket_view = views});
      optim::SGD optimizer(net->parameters(), {.lr = 0.1});
      for (int s = 0; s < kSteps; ++s) {
        optimizer.zero_grad();
        loss_of(ddp(indices_of(group->rank(), s))).backward();
        optimizer.step();
      }
      return compare(values_of(net->parameters()), expected);
    });
  }
}
const AddRankCase add_embedding("embeddings, whose gradients are dense", &check_embedding);

std::string check_cut_inside_checkpoint(const dist::ProcessGroupPtr& group) {
  // The plan has a path to b, but no gradient comes along it: only backward can find that out.
  struct CutImpl : nn::Module {
    nn::Linear a{nullptr}, b{nullptr};
    CutImpl() {
      a = register_module("a", nn::Linear(4, 4));
      b = register_module("b", nn::Linear(4, 4));
      to(kFloat64);
    }
    Tensor forward(const Tensor& x) {
      return autograd::checkpoint([this](const Tensor& in) { return a(in) + b(in).detach(); }, x);
    }
  };
  class CutModel : public nn::ModuleHolder<CutImpl> {
   public:
    using nn::ModuleHolder<CutImpl>::ModuleHolder;
  };
  CutModel net;
  dist::DistributedDataParallel<CutModel> ddp(net, group);
  try {
    loss_of(ddp(batch_of(group->rank(), 0))).backward();
    return "nothing was raised";
  } catch (const dist::ReductionError& error) {
    const dist::Verdict& verdict = error.verdicts().at(0);
    if (verdict.parameters.size() != 2 || verdict.parameters[0].name != "b.weight") return error.what();
  }
  return net->b->weight.grad().defined() ? "a gradient was left" : "";
}
const AddRankCase add_cut_inside_checkpoint("a cut inside a checkpoint, which only backward can see",
                                            &check_cut_inside_checkpoint);

}  // namespace brigade::test::unusual_models_cases
