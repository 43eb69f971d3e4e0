// Every cause of an unused parameter, beside every activity that has no part in it: the verdict is the same as without.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <brigade/autograd/function.h>

namespace brigade::test::causes_beside_cases {

using namespace mechanisms;  // NOLINT: loss_of and batch_of

using dist::CauseKind;

// Uses its parameter only if `uses` is set.
struct GateImpl : nn::Module {
  Tensor scale;
  bool uses = true;
  GateImpl() { scale = register_parameter("scale", ones({8}, kFloat64)); }
  Tensor forward(const Tensor& x) { return uses ? x * scale : x * 2.0; }
};
BRIGADE_MODULE(Gate);

struct BesideImpl : nn::Module {
  nn::Linear a{nullptr}, b{nullptr}, c{nullptr};
  Gate gate{nullptr};
  std::function<Tensor(BesideImpl&, const Tensor&)> path;  // a healthy one uses `b`
  BesideImpl() {
    a = register_module("a", nn::Linear(4, 8));
    b = register_module("b", nn::Linear(8, 8));
    c = register_module("c", nn::Linear(8, 3));
    gate = register_module("gate", Gate());
    to(kFloat64);
  }
  Tensor forward(const Tensor& x) {
    const Tensor h = gate(brigade::tanh(a(x)));
    return c(path ? path(*this, h) : brigade::tanh(b(h)));
  }
};
BRIGADE_MODULE(Beside);

// x * y, whose backward forgets y.
struct Forgets : autograd::Function<Forgets> {
  static Tensor forward(autograd::AutogradContext& ctx, const Tensor& x, const Tensor& y) {
    ctx.save_for_backward({y});
    return x * y;
  }
  static std::vector<Tensor> backward(autograd::AutogradContext& ctx, const std::vector<Tensor>& grads) {
    return {grads[0] * ctx.get_saved_variables()[0], Tensor()};
  }
};

struct Fault {
  const char* name;
  CauseKind kind;
  size_t parameters;  // how many are missed
  std::function<Tensor(BesideImpl&, const Tensor&)> path;
  std::function<void(BesideImpl&)> before_forward = {};
};

const std::vector<Fault>& faults() {
  static const std::vector<Fault> all{
      {"not called", CauseKind::ModuleNotCalled, 2, [](BesideImpl&, const Tensor& h) { return h * 1.0; }},
      {"half of it used", CauseKind::ModuleNotCalled, 1,
       [](BesideImpl& net, const Tensor& h) { return h + net.b->bias; }},
      {"parameter not used", CauseKind::NotUsed, 1, {}, [](BesideImpl& net) { net.gate->uses = false; }},
      {"detached", CauseKind::Detached, 2, [](BesideImpl& net, const Tensor& h) { return h + net.b(h).detach(); }},
      {"its input and result under no_grad", CauseKind::NoGrad, 2,
       [](BesideImpl& net, const Tensor& h) {
         Tensor y;
         {
           const NoGradGuard no_grad;
           y = net.b(h);
         }
         return h + y;
       }},
      {"a result dropped", CauseKind::OutputDropped, 2,
       [](BesideImpl& net, const Tensor& h) {
         static_cast<void>(brigade::tanh(net.b(h)));
         return h * 1.0;
       }},
      {"a mask", CauseKind::NotDifferentiable, 2,
       [](BesideImpl& net, const Tensor& h) { return h * gt(net.b(h), 0.0).to(kFloat64); }},
      {"a mask of NaN", CauseKind::NotDifferentiable, 2,
       [](BesideImpl& net, const Tensor& h) { return h + isnan(net.b(h)).to(kFloat64); }},
      {"the weight detached", CauseKind::Detached, 1,
       [](BesideImpl& net, const Tensor& h) { return matmul(h, net.b->weight.detach()) + net.b->bias; }},
      {"an index", CauseKind::NotDifferentiable, 2,
       [](BesideImpl& net, const Tensor& h) { return h + argmax(net.b(h), 1, true).to(kFloat64); }},
      {"a number of its result", CauseKind::OutputDropped, 2,
       [](BesideImpl& net, const Tensor& h) { return h * net.b(h).sum().item(); }},
      {"a number of the weight", CauseKind::ReadAsNumber, 1,
       [](BesideImpl& net, const Tensor& h) { return h * net.b->weight.to_vector<double>()[0] + net.b->bias; }},
      {"a gradient not returned", CauseKind::GradientNotReturned, 2,
       [](BesideImpl& net, const Tensor& h) { return Forgets::apply(h, net.b(h)); }},
      {"detached in a checkpoint", CauseKind::Detached, 2,
       [](BesideImpl& net, const Tensor& h) {
         return autograd::checkpoint([&net](const Tensor& in) { return in + net.b(in).detach(); }, h);
       }},
      {"frozen",
       CauseKind::Frozen,
       2,
       {},
       [](BesideImpl& net) {
         for (const Tensor& parameter : net.b->parameters())
           parameter.requires_grad_(false);
       }},
      {"replaced", CauseKind::Replaced, 2, {}, [](BesideImpl& net) {
         net.b = nn::Linear(8, 8);
         net.b->to(kFloat64);
       }}};
  return all;
}

using Wrapped = dist::DistributedDataParallel<Beside>;

// A program with something beside its steps.
struct Program {
  dist::ProcessGroupPtr group;
  Beside net, teacher;
  std::unique_ptr<Wrapped> ddp;

  Tensor validation() const { return batch_of(group->rank(), 77); }
  // `f` with the healthy path.
  template <class F>
  void evaluate(F&& f) {
    const auto faulty = std::exchange(net->path, nullptr);
    const bool uses = std::exchange(net->gate->uses, true);
    f();
    net->path = faulty;
    net->gate->uses = uses;
  }
};

struct Activity {
  const char* name;
  std::function<void(Program&)> run;
  bool only_at_first = false;
  std::function<Tensor(Program&, const Tensor& x)> in_loss = {};
};

void average_weights(Program& program) {
  const NoGradGuard no_grad;
  const std::vector<Tensor> averages = program.teacher->parameters(), weights = program.net->parameters();
  for (size_t i = 0; i < averages.size(); ++i)
    averages[i].mul_(0.9).add_(weights[i] * 0.1);
}

template <class F>
std::function<void(Program&)> of_each_weight(F f) {
  return [f](Program& program) {
    for (const Tensor& weight : program.net->parameters())
      f(weight);
  };
}

const std::vector<Activity>& activities() {
  static const std::vector<Activity> all{
      {"nothing", [](Program&) {}},
      {"a log of norms", of_each_weight([](const Tensor& weight) { norm(weight).item(); })},
      {"a log of norms under no_grad", of_each_weight([](const Tensor& weight) {
         const NoGradGuard no_grad;
         norm(weight).item();
       })},
      {"a histogram of weights", of_each_weight([](const Tensor& weight) {
         static_cast<void>(sort(weight.detach().reshape({-1})).values.to_vector<double>());
       })},
      {"weights printed", of_each_weight([](const Tensor& weight) { static_cast<void>(weight.to_vector<double>()); })},
      {"weights looked through for NaN", of_each_weight([](const Tensor& weight) { isnan(weight).any().item(); })},
      {"weights counted", of_each_weight([](const Tensor& weight) { gt(weight, 0.0).sum().item(); })},
      {"a snapshot of weights", of_each_weight([](const Tensor& weight) { static_cast<void>(weight.clone()); })},
      {"one weight logged", [](Program& program) { norm(program.net->b->weight).item(); }},
      {"an average of weights", average_weights},
      {"a teacher in the loss", average_weights, false,
       [](Program& program, const Tensor& x) {
         const NoGradGuard no_grad;
         return program.teacher(x);
       }},
      {"an evaluation of the bare module",
       [](Program& program) {
         const NoGradGuard no_grad;
         program.evaluate([&] { loss_of(program.net(program.validation())).item(); });
       }},
      {"an evaluation through the wrapper",
       [](Program& program) {
         const NoGradGuard no_grad;
         program.evaluate([&] { loss_of((*program.ddp)(program.validation())).item(); });
       }},
      {"an evaluation that records gradients",
       [](Program& program) { program.evaluate([&] { loss_of(program.net(program.validation())).item(); }); }},
      {"a validation before training",
       [](Program& program) {
         const NoGradGuard no_grad;
         program.evaluate([&] { loss_of((*program.ddp)(program.validation())).item(); });
       },
       true},
      {"a probe of one layer",
       [](Program& program) {
         const NoGradGuard no_grad;
         program.net->b(ones({2, 8}, kFloat64)).sum().item();
       }},
      {"weights compared between ranks", [](Program& program) {
         for (const Tensor& weight : program.net->parameters()) {
           const Tensor copy = weight.detach().clone();
           program.group->all_reduce(copy)->wait();
         }
       }}};
  return all;
}

struct Found {
  std::string text = "nothing was said";
  CauseKind kind = CauseKind::Unknown;
  Place place;
  size_t verdicts = 0, parameters = 0;
  std::vector<int> ranks;
};

// One step with the fault, on all ranks or on one alone; healthy ones before.
struct Setting {
  int steps;
  int rank;  // -1: all
};
Found run(const dist::ProcessGroupPtr& group, const Fault& fault, const Activity& activity, const Setting& setting) {
  manual_seed(1);
  Program program{.group = group, .net = Beside(), .teacher = Beside(), .ddp = nullptr};
  program.ddp = std::make_unique<Wrapped>(program.net, group);
  const auto beside = [&](bool first) {
    if (first || !activity.only_at_first) activity.run(program);
  };
  Found found;
  try {
    for (int step = 0; step <= setting.steps; ++step) {
      if (step == setting.steps && (setting.rank < 0 || setting.rank == group->rank())) {
        program.net->path = fault.path;
        if (fault.before_forward) fault.before_forward(*program.net);
      }
      beside(step == 0);
      const Tensor x = batch_of(group->rank(), step);
      const Tensor output = (*program.ddp)(x);
      const Tensor loss = loss_of(activity.in_loss ? output - activity.in_loss(program, x) : output);
      beside(false);
      loss.backward();
      beside(false);
      program.net->zero_grad();
    }
  } catch (const dist::ReductionError& error) {
    const dist::Verdict& verdict = error.verdicts().at(0);
    found = {error.what(), verdict.cause.kind, verdict.cause.place, error.verdicts().size(), verdict.parameters.size(),
             verdict.ranks};
  }
  return found;
}

std::string check_matrix(const dist::ProcessGroupPtr& group) {
  for (const Setting setting : {Setting{0, -1}, {1, -1}, {1, 0}, {2, 1}}) {
    for (const Fault& fault : faults()) {
      Found alone;
      for (const Activity& activity : activities()) {
        const Found found = run(group, fault, activity, setting);
        const std::string which = fmt::format("{} beside {} after {} steps on rank {}: ", fault.name, activity.name,
                                              setting.steps, setting.rank);
        if (alone.verdicts == 0) alone = found;
        if (found.kind != fault.kind || found.verdicts != 1 || found.parameters != fault.parameters)
          return which + found.text;
        if (found.place != alone.place) return which + "another line: " + found.text;
        if (found.ranks.size() != (setting.rank < 0 ? static_cast<size_t>(group->size()) : 1))
          return which + found.text;
      }
    }
  }
  return "";
}
const AddRankCase add_matrix("what happens beside a step is not why a parameter has no gradient", &check_matrix,
                             {.threads = {2}, .shm = {}, .others = {}});

}  // namespace brigade::test::causes_beside_cases
