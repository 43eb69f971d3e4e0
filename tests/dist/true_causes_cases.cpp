// Causes that forward's record does not show directly: one of several results, a backward that returns nothing, a
// segment that runs again, another thread.
#include "mechanisms_net.h"
#include "nets.h"
#include "rank_case.h"

#include <brigade/autograd/function.h>

#include <thread>

namespace brigade::test::true_causes_cases {

using namespace mechanisms;  // NOLINT: loss_of and batch_of

using dist::CauseKind;

struct Expected {
  CauseKind kind;
  std::string op;
  unsigned line;  // 0: any
  std::string note;
};

// One backward; `forward` may call the wrapper on a thread of its own.
void run_one(const dist::ProcessGroupPtr& group, const PathsImpl::Path& path, const dist::DDPOptions& options,
             bool other_thread) {
  manual_seed(1);
  Paths net(path);
  dist::DistributedDataParallel<Paths> ddp(net, group, options);
  Tensor loss;
  const auto forward = [&] { loss = loss_of(ddp(batch_of(group->rank(), 0))); };
  if (other_thread) {
    std::thread(forward).join();
  } else {
    forward();
  }
  loss.backward();
}

struct ListedImpl : nn::Module {
  nn::ParameterList scales;
  ListedImpl() {
    scales = register_module("scales", nn::ParameterList());
    for (int i = 0; i < 3; ++i)
      scales->push_back(ones({4}, kFloat64));
  }
  Tensor forward(const Tensor& x, size_t count) {
    Tensor result = x;
    for (size_t i = 0; i < count; ++i)
      result = result * (*scales)[i];
    return result;
  }
};
BRIGADE_MODULE(Listed);

// A list of parameters is not called, and is not reported as not called.
std::string check_listed(const dist::ProcessGroupPtr& group) {
  Listed net;
  dist::DistributedDataParallel<Listed> ddp(net, group);
  const size_t count = group->rank() == 0 ? 2 : 3;
  const Tensor x = batch_of(group->rank(), 0);
  const SourceLocation forward = SourceLocation::current();
  try {
    loss_of(ddp(x, count, forward)).backward();
  } catch (const dist::ReductionError& error) {
    const dist::Verdict& verdict = error.verdicts().at(0);
    const bool right = verdict.parameters.at(0).name == "scales.2" && verdict.ranks == std::vector<int>{0} &&
                       verdict.cause.kind == CauseKind::NotUsed && verdict.cause.place == Place(forward);
    return right ? "" : error.what();
  }
  return "nothing was said";
}
const AddRankCase add_listed("a parameter of a list that one rank does not take is unused where its owner was called",
                             &check_listed, everywhere({2, 3}));

// Checks that b.weight and b.bias are missed for the expected cause.
std::string missed(const dist::ProcessGroupPtr& group, const PathsImpl::Path& path, const Expected& expected,
                   const dist::DDPOptions& options = {}, bool other_thread = false) {
  try {
    run_one(group, path, options, other_thread);
  } catch (const dist::ReductionError& error) {
    const dist::Verdict& verdict = error.verdicts().at(0);
    const std::string text = verdict.message + dist::kDo + verdict.advice;
    if (error.verdicts().size() != 1 || verdict.parameters.size() != 2) return error.what();
    if (verdict.parameters[0].name != "b.weight") return "parameter: " + text;
    if (verdict.cause.kind != expected.kind) return fmt::format("{}: {}", name(verdict.cause.kind), text);
    if (verdict.cause.op != expected.op) return "op " + verdict.cause.op + ": " + text;
    if (expected.line != 0 && verdict.cause.place.line != expected.line) return "line: " + text;
    if (verdict.cause.note.find(expected.note) == std::string::npos) return "note: " + text;
    const bool tells_to_switch = text.find("switch diagnosis on") != std::string::npos;
    return tells_to_switch == (expected.kind == CauseKind::NotRecorded) ? "" : "advice: " + text;
  }
  return "nothing was said";
}
std::string healthy(const dist::ProcessGroupPtr& group, const PathsImpl::Path& path, bool other_thread = false) {
  try {
    run_one(group, path, {}, other_thread);
  } catch (const Error& error) {
    return std::string("a healthy program: ") + error.what();
  }
  return "";
}
std::string first_of(std::initializer_list<std::string> results) {
  for (const std::string& each : results) {
    if (!each.empty()) return each;
  }
  return "";
}

// A target without a gradient, by intent, and a prediction without one, by mistake: the text names both lines.
std::string check_several_cuts(const dist::ProcessGroupPtr& group) {
  const unsigned line = __LINE__ + 2;
  const auto path = [](PathsImpl& net, const Tensor& h) {
    const Tensor target = net.b(h).detach();
    const Tensor guess = net.b(h * 2.0).detach();
    return h + guess - target;
  };
  return missed(group, path,
                {CauseKind::Detached, "detach", line + 1,
                 fmt::format("other paths from the loss are cut by detach at dist/true_causes_cases.cpp:{}; ", line)});
}
const AddRankCase add_several_cuts("of several cuts each is named", &check_several_cuts, everywhere({2}));

std::string check_several_results(const dist::ProcessGroupPtr& group) {
  const unsigned line = __LINE__ + 2;
  const auto top = [](PathsImpl& net, const Tensor& h, bool indices) {
    const auto best = topk(net.b(h), 1);
    return h * (indices ? best.indices.to(kFloat64) : best.values);
  };
  return first_of({missed(group, [&](PathsImpl& net, const Tensor& h) { return top(net, h, true); },
                          {CauseKind::NotDifferentiable, "topk", line, ""}),
                   healthy(group, [&](PathsImpl& net, const Tensor& h) { return top(net, h, false); })});
}
const AddRankCase add_several_results("the indices of topk are a cut, its values are not", &check_several_results,
                                      everywhere({2}));

// A module that uses a copy of its parameter, made in its constructor.
struct EarlyImpl : nn::Module {
  enum class Copy { None, Detached, DetachedResult, DetachedBeside };
  nn::Linear layer{nullptr};
  Tensor scale, used, beside;
  unsigned cut_at = 0;
  explicit EarlyImpl(Copy copy) {
    layer = register_module("layer", nn::Linear(4, 3));
    layer->to(kFloat64);
    scale = register_parameter("scale", ones({3}, kFloat64));
    used = scale;
    cut_at = __LINE__ + 1;
    if (copy != Copy::None) beside = (copy == Copy::DetachedResult ? scale * 2.0 : scale).detach();
    if (copy == Copy::Detached || copy == Copy::DetachedResult) used = beside;
    if (copy == Copy::DetachedBeside) used = Tensor();
  }
  Tensor forward(const Tensor& x) { return used.defined() ? layer(x) * used : layer(x); }
};
BRIGADE_MODULE(Early);

std::string check_detached_before(const dist::ProcessGroupPtr& group) {
  using Copy = EarlyImpl::Copy;
  for (const Copy copy : {Copy::None, Copy::Detached, Copy::DetachedResult, Copy::DetachedBeside}) {
    Early net(copy);
    dist::DistributedDataParallel<Early> ddp(net, group);
    std::string text;
    CauseKind kind = CauseKind::Unknown;
    unsigned line = 0;
    try {
      loss_of(ddp(batch_of(group->rank(), 0))).backward();
    } catch (const dist::ReductionError& error) {
      text = error.what();
      kind = error.verdicts().at(0).cause.kind;
      line = error.verdicts().at(0).cause.place.line;
    }
    if (copy == Copy::None) {
      if (!text.empty()) return "a healthy module: " + text;
      continue;
    }
    // A copy that is not used has no part in it.
    const bool is_cut = copy != Copy::DetachedBeside;
    if (kind != (is_cut ? CauseKind::Detached : CauseKind::NotUsed) || (line == net->cut_at) != is_cut) return text;
    if ((text.find("before the module was wrapped") != std::string::npos) != is_cut) return text;
  }
  return "";
}
const AddRankCase add_detached_before("a parameter that the constructor has detached is reported with that line",
                                      &check_detached_before, everywhere({2}));

// Features of all ranks, as a contrastive loss takes them; `own_in_place`: this rank's part carries gradients.
Tensor features_of_all(const dist::ProcessGroup& group, const Tensor& own, const Tensor& gathered, bool own_in_place) {
  std::vector<Tensor> parts;
  for (int rank = 0; rank < group.size(); ++rank)
    parts.push_back(rank == group.rank() && own_in_place ? own : gathered.narrow(0, rank * own.size(0), own.size(0)));
  return cat(parts);
}

std::string check_gathered(const dist::ProcessGroupPtr& group) {
  // The healthy twin follows the advice.
  const unsigned line = __LINE__ + 5;
  const auto gather = [&](PathsImpl& net, const Tensor& h, bool detached, bool own_in_place) {
    const Tensor own = net.b(h);
    const Tensor all = zeros({group->size() * own.size(0), own.size(1)}, kFloat64);
    const Tensor sent = detached ? own.detach() : own;
    group->all_gather(all, sent)->wait();
    return matmul(matmul(h, features_of_all(*group, own, all, own_in_place).t()), ones({all.size(0), 8}, kFloat64));
  };
  const auto path = [&](bool detached, bool own_in_place) {
    return [&gather, detached, own_in_place](PathsImpl& net, const Tensor& h) {
      return gather(net, h, detached, own_in_place);
    };
  };
  const Expected expected{CauseKind::Collective, "all_gather", line, ""};
  return first_of({missed(group, path(true, false), expected), missed(group, path(false, false), expected),
                   healthy(group, path(true, true)), healthy(group, path(false, true))});
}
const AddRankCase add_gathered(
    "results that reach the loss through all_gather alone have no gradient, and why is reported", &check_gathered,
    everywhere({2}));

std::string check_summed(const dist::ProcessGroupPtr& group) {
  const unsigned line = __LINE__ + 4;
  const auto sum = [&](PathsImpl& net, const Tensor& h, bool own_in_place) {
    const Tensor own = net.b(h);
    const Tensor all = own.detach().clone();
    group->all_reduce(all)->wait();
    return h * (own_in_place ? all - own.detach() + own : all);
  };
  // A sum that is only logged changes nothing.
  const auto beside = [&](PathsImpl& net, const Tensor& h) {
    static_cast<void>(sum(net, h, false));
    return h;
  };
  return first_of({missed(group, [&](PathsImpl& net, const Tensor& h) { return sum(net, h, false); },
                          {CauseKind::Collective, "all_reduce", line, ""}),
                   missed(group, beside, {CauseKind::OutputDropped, "linear", 0, ""}),
                   healthy(group, [&](PathsImpl& net, const Tensor& h) { return sum(net, h, true); })});
}
const AddRankCase add_summed(
    "results that reach the loss through all_reduce alone have no gradient, and why is reported", &check_summed,
    everywhere({2}));

// x * y; backward omits the gradient of y if `forgets` is true.
struct Scale : autograd::Function<Scale> {
  static Tensor forward(autograd::AutogradContext& ctx, const Tensor& x, const Tensor& y, bool forgets) {
    ctx.save_for_backward({x, y});
    ctx.saved_data["forgets"] = forgets;
    return x * y;
  }
  static std::vector<Tensor> backward(autograd::AutogradContext& ctx, const std::vector<Tensor>& grads) {
    const auto saved = ctx.get_saved_variables();
    const bool forgets = std::any_cast<bool>(ctx.saved_data["forgets"]);
    return {grads[0] * saved[1], forgets ? Tensor() : grads[0] * saved[0], {}};
  }
};

std::string check_custom_function(const dist::ProcessGroupPtr& group) {
  const unsigned line = __LINE__ + 1;
  const auto scale = [](PathsImpl& net, const Tensor& h, bool forgets) { return Scale::apply(h, net.b(h), forgets); };
  return first_of({missed(group, [&](PathsImpl& of, const Tensor& h) { return scale(of, h, true); },
                          {CauseKind::GradientNotReturned, "Scale", line, ""}),
                   healthy(group, [&](PathsImpl& of, const Tensor& h) { return scale(of, h, false); })});
}
const AddRankCase add_custom_function("a custom function that returns no gradient is named", &check_custom_function,
                                      everywhere({2}));

// data_ptr() is not on the tape. The verdict is still true: no operation took the result, or the parameter, further.
std::string check_read_by_pointer(const dist::ProcessGroupPtr& group) {
  const unsigned line = __LINE__ + 2;
  const auto of_result = [](PathsImpl& net, const Tensor& h) {
    const Tensor y = net.b(h);
    return h * *y.data_ptr<double>();
  };
  const auto of_parameter = [](PathsImpl& net, const Tensor& h) { return h * *net.b->weight.data_ptr<double>(); };
  const unsigned numbers = __LINE__ + 1;
  const auto to_numbers = [](PathsImpl& net, const Tensor& h) { return h * net.b(h).to_vector<double>()[0]; };
  return first_of({missed(group, of_result, {CauseKind::OutputDropped, "linear", line, ""}),
                   missed(group, of_parameter, {CauseKind::ModuleNotCalled, "", 0, ""}),
                   missed(group, to_numbers, {CauseKind::OutputDropped, "linear", numbers, ""})});
}
const AddRankCase add_read_by_pointer("a result that is read through data_ptr is reported as the last on its way",
                                      &check_read_by_pointer, everywhere({2}));

std::string check_segment(const dist::ProcessGroupPtr& group) {
  const unsigned call = __LINE__ + 3;
  const auto segment = [](const std::function<Tensor(PathsImpl&, const Tensor&)>& inside) {
    return [inside](PathsImpl& net, const Tensor& h) {
      return autograd::checkpoint([&net, inside](const Tensor& in) { return inside(net, in); }, h);
    };
  };
  const std::string note = "inside the checkpoint at dist/true_causes_cases.cpp:";
  const unsigned detached = __LINE__ + 1;
  const auto detaches = segment([](PathsImpl& net, const Tensor& in) { return in + net.b(in).detach(); });
  const unsigned forgotten = __LINE__ + 1;
  const auto forgets = segment([](PathsImpl& net, const Tensor& in) { return Scale::apply(in, net.b(in), true); });
  const unsigned unrecorded = __LINE__ + 4;
  const auto under_no_grad = segment([](PathsImpl& net, const Tensor& in) {
    Tensor quiet;
    {
      const NoGradGuard no_grad;
      quiet = net.b(in);
    }
    return in + quiet;
  });
  const unsigned dropped = __LINE__ + 2;
  const auto drops = segment([](PathsImpl& net, const Tensor& in) {
    const Tensor unused = brigade::tanh(net.b(in));
    return in * 2.0;
  });
  const auto switches = segment([run = std::make_shared<int>(0)](PathsImpl& net, const Tensor& in) {
    return (*run)++ % 2 == 0 ? in + net.b(in) : in * 2.0;
  });
  return first_of({missed(group, switches, {CauseKind::NotUsed, "checkpoint", call, ""}),
                   missed(group, detaches, {CauseKind::Detached, "detach", detached, note}),
                   missed(group, forgets, {CauseKind::GradientNotReturned, "Scale", forgotten, note}),
                   missed(group, under_no_grad, {CauseKind::NoGrad, "linear", unrecorded, note}),
                   missed(group, drops, {CauseKind::OutputDropped, "tanh", dropped, note}),
                   healthy(group, segment([](PathsImpl& net, const Tensor& in) { return in + net.b(in); }))});
}
const AddRankCase add_segment("what happens inside a checkpointed segment is reported as if it had not been one",
                              &check_segment, everywhere({2}));

std::string check_other_thread(const dist::ProcessGroupPtr& group) {
  const auto skips = [](PathsImpl&, const Tensor& h) { return h * 2.0; };
  return first_of({missed(group, skips, {CauseKind::OtherThread, "mean", 0, ""}, {}, true),
                   missed(group, skips, {CauseKind::ModuleNotCalled, "", 0, ""}),
                   healthy(
                       group, [](PathsImpl& net, const Tensor& h) { return net.b(h); }, true)});
}
const AddRankCase add_other_thread("forward on another thread: no module is said not to have been called",
                                   &check_other_thread, everywhere({2}));

std::string check_switched_off(const dist::ProcessGroupPtr& group) {
  return missed(group, [](PathsImpl&, const Tensor& h) { return h * 2.0; }, {CauseKind::NotRecorded, "", 0, ""},
                {.diagnosis = false});
}
const AddRankCase add_switched_off("only where diagnosis is off the advice is to switch it on", &check_switched_off,
                                   everywhere({2}));

}  // namespace brigade::test::true_causes_cases
