// Gradients that are set or changed by hand between reduction and step: an error only if some rank then has other
// values.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <algorithm>

namespace brigade::test::gradients_by_hand_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

// What a rank does to the reduced gradients.
using Edit = std::function<void(const dist::ProcessGroupPtr&, Net&, int step)>;

void set_clones(const dist::ProcessGroupPtr&, Net& net, int) {
  for (const Tensor& parameter : net->parameters())
    parameter.set_grad(parameter.grad().clone());
}

void set_clones_on_one_rank(const dist::ProcessGroupPtr& group, Net& net, int step) {
  if (group->rank() == 0) set_clones(group, net, step);
}

void scale_all_alike(const dist::ProcessGroupPtr&, Net& net, int) {
  for (const Tensor& parameter : net->parameters()) {
    parameter.grad().mul_(2.0);
    parameter.grad().mul_(0.5);
  }
}

// Rank 0 runs another operation than the others, with the same result.
void scale_otherwise(const dist::ProcessGroupPtr& group, Net& net, int) {
  for (const Tensor& parameter : net->parameters()) {
    if (group->rank() == 0) {
      parameter.grad().add_(zeros_like(parameter.grad()));
    } else {
      parameter.grad().mul_(1.0);
    }
  }
}

void reduce_by_hand_and_set(const dist::ProcessGroupPtr& group, Net& net, int step) {
  std::vector<Tensor> gradients;
  {
    const Tensor loss[] = {loss_of(net(batch_of(group->rank(), step)))};
    gradients = autograd::grad(loss, net->parameters());
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    group->all_reduce(gradients[i], {.op = dist::ReduceOp::Avg})->wait();
    net->parameters()[i].set_grad(gradients[i].clone());
  }
}

Values train_and(const dist::ProcessGroupPtr& group, bool views, const Edit& edit) {
  manual_seed(1);
  Net net;
  Ddp ddp(net, group, {.gradient_as_bucket_view = views});
  optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
  for (int s = 0; s < kSteps; ++s) {
    optimizer.zero_grad();
    loss_of(ddp(batch_of(group->rank(), s))).backward();
    edit(group, net, s);
    optimizer.step();
  }
  return values_of(net->parameters());
}

void check_sound(const std::string& backend, int ranks) {
  const std::pair<const char*, Edit> edits[] = {{"clones", set_clones},
                                                {"clones on one rank", set_clones_on_one_rank},
                                                {"scaled", scale_all_alike},
                                                {"scaled otherwise", scale_otherwise},
                                                {"reduced by hand", reduce_by_hand_and_set}};
  const Values expected = plain_reference(ranks);
  for (const auto& [name, edit] : edits) {
    for (const bool views : {true, false}) {
      CAPTURE(name);
      CAPTURE(views);
      expect_well(backend, ranks, [&](const dist::ProcessGroupPtr& group) {
        return compare(train_and(group, views, edit), expected, 1e-9);
      });
    }
  }
}
const AddRankCase add_sound("gradients set or changed by hand to the same values on every rank are taken", &check_sound,
                            everywhere({2, 3}));

void add_noise(const dist::ProcessGroupPtr& group, Net& net, int step) {
  RandomGenerator generator(static_cast<uint64_t>(group->rank()) + 10 * static_cast<uint64_t>(step));
  const Tensor grad = net->parameters()[2].grad();
  grad.add_(randn(grad.sizes(), kFloat64, &generator) * 0.1);
}

void scale_on_one_rank(const dist::ProcessGroupPtr& group, Net& net, int) {
  if (group->rank() == 1) net->parameters()[2].grad().mul_(1.01);
}

void set_own(const dist::ProcessGroupPtr& group, Net& net, int) {
  const Tensor parameter = net->parameters()[2];
  parameter.set_grad(parameter.grad() * (1.0 + 0.01 * group->rank()));
}

void clip_by_other_norms(const dist::ProcessGroupPtr& group, Net& net, int) {
  optim::clip_grad_norm_(net->parameters(), group->rank() == 0 ? 1e-3 : 2e-3);
}

void check_found(const std::string& backend, int ranks) {
  struct Row {
    const char* name;
    Edit edit;
    std::vector<std::string> parts;
  };
  const Row rows[] = {
      {"noise", add_noise, {"b.weight", "add_ at", "on every rank to other values"}},
      {"one rank", scale_on_one_rank, {"b.weight, on rank 1", "mul_ at", "only, after the reduction"}},
      {"own", set_own, {"b.weight", "the gradient was set at", "the ranks' values differ"}},
      {"clipped",
       clip_by_other_norms,
       {"clip_grad_norm_ at",
        ranks == 2 ? "on every rank to other values" : "on rank 0 to other values than on the others"}},
  };
  for (const Row& row : rows) {
    for (const bool views : {true, false}) {
      CAPTURE(row.name);
      CAPTURE(views);
      expect_well(backend, ranks, [&](const dist::ProcessGroupPtr& group) {
        return expect_error<dist::ConsistencyError>([&] { train_and(group, views, row.edit); }, row.parts);
      });
    }
  }
}
const AddRankCase add_found("gradients set or changed by hand to other values on some rank are found", &check_found,
                            everywhere({2, 3}));

// --- Gradients that no zero_grad() clears

using Write = void (*)(Net&);
void nothing(Net&) {}
void age(Net& net) {
  for (const Tensor& parameter : net->parameters())
    if (parameter.grad().defined()) parameter.grad().mul_(0.9);
}
void age_one(Net& net) {
  if (net->b->weight.grad().defined()) net->b->weight.grad().mul_(0.9);
}
void clip(Net& net) { optim::clip_grad_norm_(net->parameters(), 0.5); }

// Where the program writes to the gradients, and of how many parameters it is warned.
struct Kept {
  const char* name;
  size_t warned_of;
  Write before_backward = nothing, before_step = nothing;
  bool in_backward = false;  // each one when it is complete
};

std::string check_kept(const dist::ProcessGroupPtr& group) {
  const Kept rows[] = {{"aged", 0, age},
                       {"aged and clipped", 0, age, clip},
                       {"one of them aged", 5, age_one},
                       {"nothing", 6},
                       {"clipped", 6, nothing, clip},
                       {"clipped too late", 6, clip},
                       {"aged too late", 6, nothing, age},
                       {"aged in backward", 6, nothing, nothing, true}};
  const auto train = [](const Kept& row, Net& net, const std::function<Tensor(int)>& forward) {
    optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
    for (const Tensor& parameter : net->parameters())
      if (row.in_backward)
        parameter.register_post_accumulate_grad_hook([](const Tensor& leaf) { leaf.grad().mul_(0.9); });
    for (int s = 0; s < kSteps; ++s) {
      row.before_backward(net);
      loss_of(forward(s)).backward();
      row.before_step(net);
      optimizer.step();
    }
    return values_of(net->parameters());
  };
  for (const Kept& row : rows) {
    for (const bool views : {true, false}) {
      manual_seed(1);
      Net net;
      Ddp ddp(net, group, {.gradient_as_bucket_view = views});
      const Values moved = train(row, net, [&](int s) { return ddp(batch_of(group->rank(), s)); });
      const auto& found = ddp.advisories();
      const auto told = std::ranges::find(found, "gradients_accumulate", &dist::Verdict::kind);
      const size_t warned_of = told == found.end() ? 0 : told->parameters.size();
      if (warned_of != row.warned_of) return fmt::format("{}: of {} parameters", row.name, warned_of);
      if (row.in_backward) continue;  // on each rank's own gradients
      manual_seed(1);
      Net alone;
      const Values expected = train(row, alone, [&](int s) { return alone(whole_batch(group->size(), s)); });
      if (const std::string wrong = compare(moved, expected, 1e-9); !wrong.empty()) return wrong;
    }
  }
  return "";
}
const AddRankCase add_kept("gradients that the program ages in place of zero_grad are kept on purpose", &check_kept,
                           everywhere({2, 3}));

// More writes than a small log per thread would hold.
std::string check_many_parameters(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  nn::Sequential net;
  for (int i = 0; i < 200; ++i)
    net->push_back(nn::Linear(2, 2));
  dist::DistributedDataParallel ddp(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  RandomGenerator generator(static_cast<uint64_t>(group->rank()));
  mean(ddp(randn({3, 2}, kFloat32, &generator))).backward();
  if (group->rank() == 0) net->parameters()[0].grad().add_(ones({2, 2}));
  for (const Tensor& parameter : net->parameters())
    parameter.grad().mul_(0.5);
  return expect_error<dist::ConsistencyError>([&] { optimizer.step(); }, {"0.weight", "add_ at"});
}
const AddRankCase add_many_parameters("an edit is found among those of 400 other gradients", &check_many_parameters,
                                      everywhere({2}));

// Rank 0 sets clones, which changes nothing; the last rank edits a reduced gradient, which is reported with its line.
std::string check_edit_beside_clone(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  Net net;
  Ddp ddp(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  unsigned line = 0;
  try {
    for (int s = 0; s < 2; ++s) {
      optimizer.zero_grad();
      loss_of(ddp(batch_of(group->rank(), s))).backward();
      if (group->rank() == 0) set_clones(group, net, s);
      line = __LINE__ + 1;
      if (s == 1 && group->rank() == group->size() - 1) net->b->weight.grad().mul_(1.5);
      optimizer.step();
    }
  } catch (const dist::ConsistencyError& error) {
    const dist::Verdict& verdict = error.verdicts().at(0);
    const Place expected("dist/gradients_by_hand_cases.cpp", line);
    const bool right = error.verdicts().size() == 1 && verdict.kind == "gradients_edited" &&
                       verdict.ranks == std::vector<int>{group->size() - 1} &&
                       to_string(verdict.cause.place) == to_string(expected);
    return right ? "" : error.what();
  }
  return "nothing was said";
}
const AddRankCase add_edit_beside_clone("an edit on one rank is reported beside clones on another",
                                        &check_edit_beside_clone, everywhere({2, 3}));

// An unwrapped teacher in a module of its own, and a parameter of no module, next to the wrapped network.
struct TeacherImpl : nn::Module {
  Net net{nullptr};
  TeacherImpl() { net = register_module("net", Net()); }
};
BRIGADE_MODULE(Teacher);

std::string check_names_elsewhere(const dist::ProcessGroupPtr& group) {
  Net net;
  Teacher teacher;
  const unsigned line = __LINE__ + 1;
  const Tensor temperature = ones({}, kFloat64).requires_grad_();
  Ddp ddp(net, group);
  std::vector<Tensor> all = net->parameters();
  all.push_back(temperature);
  const std::vector<Tensor> others = teacher->parameters();
  all.insert(all.end(), others.begin(), others.end());
  optim::SGD optimizer(all, {.lr = 0.1});
  loss_of(ddp(batch_of(group->rank(), 0))).backward();
  if (group->rank() == group->size() - 1) {
    for (const Tensor& each : {teacher->net->b->weight, temperature})
      each.set_grad(zeros_like(each));
  }
  try {
    optimizer.step();
  } catch (const dist::ConsistencyError& error) {
    const dist::Verdict& verdict = error.verdicts().at(0);
    if (verdict.parameters.size() != 2) return error.what();
    const std::string made = to_string(Place("dist/gradients_by_hand_cases.cpp", line));
    if (verdict.parameters[0].name != fmt::format("parameter 6 of SGD (made at {})", made)) return error.what();
    return verdict.parameters[1].name == "net.b.weight" ? "" : error.what();
  }
  return "nothing was said";
}
// The same parameter, trained by the loss: it has the same name.
std::string check_names_unmanaged(const dist::ProcessGroupPtr& group) {
  Net net;
  const unsigned line = __LINE__ + 1;
  const Tensor temperature = ones({}, kFloat64).requires_grad_();
  Ddp ddp(net, group);
  std::vector<Tensor> all = net->parameters();
  all.push_back(temperature);
  const optim::SGD first(net->parameters(), {.lr = 0.1});
  optim::SGD optimizer(all, {.lr = 0.1});
  loss_of(ddp(batch_of(group->rank(), 0)) * temperature).backward();
  try {
    optimizer.step();
  } catch (const dist::ConsistencyError& error) {
    const dist::Verdict& verdict = error.verdicts().at(0);
    if (verdict.kind != "unmanaged_parameters") return error.what();
    const std::string made = to_string(Place("dist/gradients_by_hand_cases.cpp", line));
    return verdict.parameters[0].name == fmt::format("parameter 6 of SGD#2 (made at {})", made) ? "" : error.what();
  }
  return "nothing was said";
}
const AddRankCase add_names_unmanaged("a parameter of no module has one name in every verdict", &check_names_unmanaged,
                                      everywhere({2}));

const AddRankCase add_names_elsewhere(
    "what no wrapper knows is named by its path in its own module, or by the line that made it", &check_names_elsewhere,
    everywhere({2, 3}));

}  // namespace brigade::test::gradients_by_hand_cases
