// Modules that no backward reaches although their forward runs, and optimizers of modules that are gone: reported with
// the cause after a few steps, but not where each loss has a step of its own.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <algorithm>

namespace brigade::test::unreached_modules_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

using dist::CauseKind;
using dist::Verdict;

std::string kinds_of(const std::vector<Verdict>& verdicts) {
  std::string kinds;
  for (const Verdict& verdict : verdicts) {
    if (verdict.severity != dist::Severity::Note) kinds += verdict.kind + " " + name(verdict.cause.kind) + ";";
  }
  return kinds;
}

// A loss made of a number that was read from the output, on every rank.
std::string check_constant_loss(const dist::ProcessGroupPtr& group) {
  for (const bool reads : {true, false}) {
    manual_seed(1);
    Net net;
    Ddp ddp(net, group);
    optim::SGD optimizer(net->parameters(), {.lr = 0.1});
    unsigned line = 0;
    for (int s = 0; s < 4; ++s) {
      optimizer.zero_grad();
      line = __LINE__ + 1;
      Tensor loss = mean(square(ddp(batch_of(group->rank(), s))));
      if (reads) loss = scalar_tensor(loss.item(), kFloat64).requires_grad_();
      loss.backward();
      if (s < 1 && !ddp.advisories().empty()) return "told at once: " + kinds_of(ddp.advisories());
      optimizer.step();
    }
    const std::string kinds = kinds_of(ddp.advisories());
    if (kinds != (reads ? "unreached_module output_dropped;" : "")) return fmt::format("reads {}: {}", reads, kinds);
    if (!reads) continue;
    const Verdict& verdict = ddp.advisories().front();
    if (verdict.cause.place.line != line || verdict.parameters.size() != 6) return verdict.message;
    if (verdict.message.find("its value was read as a number, by item() at") == std::string::npos)
      return verdict.message;
    if (verdict.ranks.empty() || verdict.iteration != 2) return "when: " + verdict.message;
  }
  return "";
}
const AddRankCase add_constant_loss("a loss that depends on no parameter on any rank is reported in the second step",
                                    &check_constant_loss, everywhere({2}));

// An encoder and a decoder in wrappers of their own, moved by one optimizer.
struct Pair {
  enum class Way { Whole, Detached, DetachedUnderNoGrad, StepForEach, Frozen, LookedAtOnce, OwnOptimizer };
  static std::string told(const dist::ProcessGroupPtr& group, Way way, unsigned& cut_at, std::vector<Verdict>& found) {
    manual_seed(1);
    Net encoder, decoder;
    Ddp first(encoder, group), second(decoder, group);
    std::vector<Tensor> all = encoder->parameters();
    const bool is_own = way == Way::OwnOptimizer;
    if (!is_own) std::ranges::copy(decoder->parameters(), std::back_inserter(all));
    optim::SGD optimizer(all, {.lr = 0.1}), of_decoder(decoder->parameters(), {.lr = 0.1});
    if (way == Way::Frozen) encoder->requires_grad_(false);
    for (int s = 0; s < 6; ++s) {
      const Tensor x = batch_of(group->rank(), s);
      Tensor code;
      {
        const AutoGradMode mode(way != Way::DetachedUnderNoGrad);
        code = way != Way::LookedAtOnce || s == 0 ? first(x) : encoder(x);
      }
      optimizer.zero_grad();
      cut_at = __LINE__ + 1;
      const Tensor in = way == Way::Whole || way == Way::Frozen ? code : code.detach();
      loss_of(second(cat({in, x.narrow(1, 0, 1)}, 1))).backward();
      optimizer.step();
      if (is_own) of_decoder.step(), of_decoder.zero_grad();
      if (way != Way::StepForEach) continue;
      optimizer.zero_grad();
      loss_of(code).backward();
      optimizer.step();
    }
    found = first.advisories();
    return kinds_of(first.advisories()) + kinds_of(second.advisories());
  }
};

std::string check_detached(const dist::ProcessGroupPtr& group) {
  unsigned line = 0;
  std::vector<Verdict> found;
  const std::string faulty = Pair::told(group, Pair::Way::Detached, line, found);
  if (faulty != "unreached_module detached;") return "detached: " + faulty;
  if (found.front().cause.place.line != line || found.front().iteration != 3) return found.front().message;
  if (found.front().advice.find("remove the detach()") == std::string::npos) return found.front().advice;
  const std::string alone = Pair::told(group, Pair::Way::OwnOptimizer, line, found);
  if (alone != "unreached_module detached;" || found.front().iteration != 3) return "own optimizer: " + alone;
  // Healthy twins: the advised program, a step for each loss, a module that the user has frozen.
  for (const Pair::Way way : {Pair::Way::Whole, Pair::Way::DetachedUnderNoGrad, Pair::Way::StepForEach,
                              Pair::Way::Frozen, Pair::Way::LookedAtOnce}) {
    const std::string told = Pair::told(group, way, line, found);
    if (!told.empty()) return fmt::format("way {}: {}", static_cast<int>(way), told);
  }
  return "";
}
const AddRankCase add_detached("a wrapper that is cut off from the loss of another one is reported, with the cut",
                               &check_detached, everywhere({2, 3}));

// A generator trains in every third iteration only, while its optimizer steps in each; and, where unused parameters are
// allowed, a loss is a constant on all ranks, as when no sample counts.
std::string check_waiting(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  Net generator, discriminator;
  Ddp first(generator, group), second(discriminator, group, {.find_unused_parameters = true});
  optim::SGD of_first(generator->parameters(), {.lr = 0.1}), of_second(discriminator->parameters(), {.lr = 0.1});
  for (int s = 0; s < 9; ++s) {
    const Tensor x = batch_of(group->rank(), s);
    const Tensor fake = cat({first(x), x.narrow(1, 0, 1)}, 1);
    of_second.zero_grad();
    loss_of(second(fake.detach())).backward();
    of_second.step();
    of_first.zero_grad();
    if (s % 3 == 2) loss_of(second(fake)).backward();
    of_first.step();
    if (s != 4) continue;
    static_cast<void>(second(x));
    of_second.zero_grad();
    zeros({}, kFloat64).requires_grad_().backward();
    of_second.step();
  }
  return kinds_of(first.advisories()) + kinds_of(second.advisories());
}
const AddRankCase add_waiting("a module that waits for its turn, and a loss that is a constant once, are left alone",
                              &check_waiting, everywhere({2}));

// Optimizers that step in hooks of their parameters, with gradients that are still the rank's own.
std::string check_step_in_hook(const dist::ProcessGroupPtr& group) {
  for (const bool by_wrapper : {false, true}) {
    manual_seed(1);
    Net net;
    Ddp ddp(net, group);
    const auto make = [](std::vector<Tensor> parameters) {
      return std::make_unique<optim::SGD>(std::move(parameters), optim::SGDOptions{.lr = 0.1});
    };
    std::vector<std::unique_ptr<optim::SGD>> optimizers;
    unsigned line = 0;
    if (by_wrapper) ddp.apply_optimizer_in_backward(make);
    for (const Tensor& parameter : net->parameters()) {
      if (by_wrapper) break;
      optim::SGD* const own = optimizers.emplace_back(make({parameter})).get();
      line = __LINE__ + 1;
      parameter.register_post_accumulate_grad_hook([own](const Tensor&) { own->step(); });
    }
    const Values before = values_of(net->parameters());
    try {
      loss_of(ddp(batch_of(group->rank(), 0))).backward();
    } catch (const dist::ConsistencyError& error) {
      const Verdict& verdict = error.verdicts().at(0);
      if (by_wrapper || verdict.kind != "unreduced_gradients" || verdict.cause.place.line != line) return error.what();
      if (verdict.advice.find("apply_optimizer_in_backward") == std::string::npos) return verdict.advice;
      if (values_of(net->parameters()) != before) return "a weight has moved";
      continue;
    }
    if (!by_wrapper) return "nothing was said";
    if (values_of(net->parameters()) == before) return "nothing has moved";
  }
  return "";
}
const AddRankCase add_step_in_hook("a step in the middle of a backward, by the rank's own gradient, is an error",
                                   &check_step_in_hook, everywhere({2, 3}));

// The optimizer was made before the head of the module was replaced.
std::string check_gone_layer(const dist::ProcessGroupPtr& group) {
  for (const bool adds_new_head : {false, true}) {
    manual_seed(1);
    Net net;
    optim::SGD optimizer(net->parameters(), {.lr = 0.1});
    nn::Linear head(8, 2);
    head->to(kFloat64);
    net->c = net->replace_module("c", head);
    if (adds_new_head) optimizer.add_param_group(net->c->parameters());
    Ddp ddp(net, group);
    for (int s = 0; s < 4; ++s) {
      optimizer.zero_grad();
      loss_of(ddp(batch_of(group->rank(), s))).backward();
      optimizer.step();
    }
    const std::string kinds = kinds_of(ddp.advisories());
    if (kinds != (adds_new_head ? "" : "stale_optimizer replaced;")) return "told: " + kinds;
    if (adds_new_head) continue;
    const Verdict& verdict = ddp.advisories().front();
    if (verdict.parameters.size() != 2 || verdict.parameters[0].name != "c.weight") return verdict.message;
    const bool names_lines = verdict.message.find("SGD (made at ") == 0 &&
                             verdict.message.find("; no optimizer holds c.weight, c.bias") != std::string::npos &&
                             verdict.message.find("has had another one since line ") != std::string::npos;
    if (!names_lines) return verdict.message;
  }
  return "";
}
const AddRankCase add_gone_layer("an optimizer that was made before a layer was replaced is reported, and no other",
                                 &check_gone_layer, everywhere({2}));

// The same if the optimizer holds nothing that the wrapper averages: the other layers are frozen.
std::string check_gone_head(const dist::ProcessGroupPtr& group) {
  for (const bool renewed : {false, true}) {
    manual_seed(1);
    Net net;
    auto optimizer = std::make_unique<optim::SGD>(net->parameters(), optim::SGDOptions{.lr = 0.1});
    nn::Linear head(8, 3);
    head->to(kFloat64);
    net->c = net->replace_module("c", head);
    net->a->requires_grad_(false);
    net->b->requires_grad_(false);
    if (renewed) optimizer = std::make_unique<optim::SGD>(net->c->parameters(), optim::SGDOptions{.lr = 0.1});
    Ddp ddp(net, group);
    for (int s = 0; s < 4; ++s) {
      optimizer->zero_grad();
      head->zero_grad();
      loss_of(ddp(batch_of(group->rank(), s))).backward();
      optimizer->step();
    }
    const std::string kinds = kinds_of(ddp.advisories());
    if (kinds != (renewed ? "" : "stale_optimizer replaced;")) return fmt::format("renewed {}: {}", renewed, kinds);
    if (renewed) continue;
    const Verdict& verdict = ddp.advisories().front();
    if (verdict.message.find("holds `c.weight`, which the module no longer has") == std::string::npos ||
        verdict.parameters.size() != 2 || verdict.iteration != 1)
      return verdict.message;
  }
  return "";
}
const AddRankCase add_gone_head("an optimizer of a replaced head and a frozen rest is reported, and no other",
                                &check_gone_head, everywhere({2}));

// The optimizer holds copies of the parameters.
std::string check_copies(const dist::ProcessGroupPtr& group) {
  for (const bool of_copies : {true, false}) {
    manual_seed(1);
    Net net;
    std::vector<Tensor> held = net->parameters();
    for (Tensor& each : held)
      if (of_copies) each = each.detach().clone().requires_grad_();
    optim::SGD optimizer(held, {.lr = 0.1});
    // Free tensors that wait for their first gradient are no fault.
    optim::SGD of_latents({zeros({2}).requires_grad_()}, {.lr = 0.1});
    Ddp ddp(net, group);
    for (int s = 0; s < 5; ++s) {
      net->zero_grad();
      loss_of(ddp(batch_of(group->rank(), s))).backward();
      optimizer.step();
      of_latents.step();
    }
    const std::string kinds = kinds_of(ddp.advisories());
    if (kinds != (of_copies ? "stale_optimizer replaced;" : "")) return fmt::format("copies {}: {}", of_copies, kinds);
    if (!of_copies) continue;
    const Verdict& verdict = ddp.advisories().front();
    if (verdict.message.find("holds tensors of no module") == std::string::npos || verdict.iteration != 3)
      return verdict.message;
  }
  return "";
}
const AddRankCase add_copies("an optimizer of copies is reported in its third step, and one of latents is not",
                             &check_copies, everywhere({2}));

// An embedding that shares its weight with the head, until `change` runs before the third step.
struct TiedImpl : nn::Module {
  nn::Embedding table{nullptr};
  nn::Linear head{nullptr};
  TiedImpl() {
    table = register_module("table", nn::Embedding(6, 4));
    head = register_module("head", nn::Linear(4, 6));
    tie();
  }
  void tie() { head->weight = head->replace_parameter("weight", table->weight); }
  void untie() { head->weight = head->replace_parameter("weight", table->weight.detach().clone().requires_grad_()); }
  Tensor forward(const Tensor& tokens) { return head(table(tokens)); }
};
BRIGADE_MODULE(Tied);

std::string said_of_tied(const dist::ProcessGroupPtr& group, const std::function<void(Tied&)>& change) {
  Tied net;
  dist::DistributedDataParallel<Tied> ddp(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  const Tensor tokens = tensor(std::vector<int64_t>{0, 2, group->rank() + 1}, {3});
  for (int s = 0; s < 5; ++s) {
    if (s == 2) change(net);
    optimizer.zero_grad();
    cross_entropy(ddp(tokens), tokens).backward();
    optimizer.step();
  }
  if (ddp.advisories().empty()) return "";
  return kinds_of(ddp.advisories()) + ddp.advisories().front().message;
}

std::string check_broken_tie(const dist::ProcessGroupPtr& group) {
  const std::string said = said_of_tied(group, [](Tied& net) { net->untie(); });
  if (!said.starts_with("stale_optimizer replaced;") ||
      said.find("holds an earlier `head.weight`") == std::string::npos)
    return "told: " + said;
  const std::pair<const char*, std::function<void(Tied&)>> sound[] = {
      {"nothing", [](Tied&) {}},
      {"a frozen copy",
       [](Tied& net) {
         net->untie();
         net->head->weight.requires_grad_(false);
       }},
      {"tied again",
       [](Tied& net) {
         net->untie();
         net->tie();
       }},
      {"another module with the same weight, which goes", [](Tied& net) {
         nn::Linear other(4, 6);
         other->weight = other->replace_parameter("weight", net->table->weight);
       }}};
  for (const auto& [what, change] : sound) {
    if (const std::string told = said_of_tied(group, change); !told.empty()) return fmt::format("{}: {}", what, told);
  }
  return "";
}
const AddRankCase add_broken_tie("a tied weight that one of its names has no more is reported, and no other change",
                                 &check_broken_tie, everywhere({2}));

}  // namespace brigade::test::unreached_modules_cases
