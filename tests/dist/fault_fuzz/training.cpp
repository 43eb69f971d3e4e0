// The training loop of a random program, on a rank and in one process. Notes the line of the planted fault.
#include "training.h"

#include "net.h"

#include <brigade/autograd/functional.h>
#include <brigade/dist/comm_hooks/comm_hook.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/kernels/factory.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <sstream>

namespace brigade::test::fuzz {

namespace {

Tensor batch_of(int rank, int step, int micro_batch) {
  RandomGenerator generator(1000 + 17 * static_cast<uint64_t>(rank) + 101 * static_cast<uint64_t>(step) +
                            1009 * static_cast<uint64_t>(micro_batch));
  return randn({5, kWidth}, kFloat64, &generator);
}

Tensor loss_of(const std::vector<Tensor>& results) {
  Tensor loss;
  for (const Tensor& result : results) {
    if (!result.defined()) continue;  // dropped
    const Tensor term = mean(square(result - 1.0));
    loss = loss.defined() ? loss + term : term;
  }
  return loss;
}

void train_other_model(const Tensor& input) {
  nn::Linear other(kWidth, 1);
  other->to(kFloat64);
  optim::SGD optimizer(other->parameters(), {.lr = 0.1});
  mean(square(other(input))).backward();
  optimizer.step();
}

Critic critic_of(const Spec& spec, const Net& net) {
  return spec.second == Second::None ? Critic(nullptr) : Critic(spec, net);
}

// The optimizers of the net and of the second model.
class Optimizers {
 public:
  Optimizers(const Spec& spec, const Net& net, const Critic& critic) {
    // Includes frozen parameters, which do not move.
    const std::vector<Tensor> parameters = net->parameters();
    const auto middle = parameters.begin() +
                        static_cast<std::ptrdiff_t>(spec.two_optimizers ? parameters.size() / 2 : parameters.size());
    all_.push_back(made(spec.rule, {parameters.begin(), middle}));
    if (spec.two_optimizers) all_.push_back(made(spec.rule, {middle, parameters.end()}));
    if (spec.scheduler) {
      for (const auto& optimizer : all_)
        schedulers_.push_back(std::make_unique<optim::StepLR>(*optimizer, 1, 0.5));
    }
    if (critic) critic_ = made(Rule::SGD, critic->own->parameters());
  }

  void zero_grad() const {
    for (const auto& optimizer : all_)
      optimizer->zero_grad();
    if (critic_) critic_->zero_grad();
  }
  void step(Now& now) const {
    for (const auto& optimizer : all_) {
      now.blame_next_line({Fault::OtherLearningRate});
      optimizer->step();
    }
    if (critic_) critic_->step();
    for (const auto& scheduler : schedulers_)
      scheduler->step();
  }
  optim::Optimizer& first() const { return *all_.front(); }

 private:
  static std::unique_ptr<optim::Optimizer> made(Rule rule, const std::vector<Tensor>& parameters) {
    switch (rule) {
      case Rule::SGD: return std::make_unique<optim::SGD>(parameters, optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
      case Rule::Adam: return std::make_unique<optim::Adam>(parameters, optim::AdamOptions{.lr = 0.01});
      case Rule::RMSprop: return std::make_unique<optim::RMSprop>(parameters, optim::RMSpropOptions{.lr = 0.01});
      case Rule::Adagrad: return std::make_unique<optim::Adagrad>(parameters, optim::AdagradOptions{.lr = 0.01});
    }
    return nullptr;
  }

  std::vector<std::unique_ptr<optim::Optimizer>> all_;
  std::unique_ptr<optim::Optimizer> critic_;
  std::vector<std::unique_ptr<optim::StepLR>> schedulers_;
};

std::string values_of(const Net& net, const Critic& critic) {
  std::string text = "ok";
  const auto add = [&](const std::vector<Tensor>& parameters) {
    for (const Tensor& parameter : parameters) {
      for (const double value : parameter.to_vector<double>())
        text += fmt::format(" {:.17g}", value);
    }
  };
  add(net->parameters());
  if (critic) add(critic->parameters());
  return text;
}

std::string in_a_line(const dist::Verdict& verdict) {
  std::set<std::string> names;
  for (const dist::ParameterVerdict& parameter : verdict.parameters)
    names.insert(parameter.name);
  const std::string place = verdict.cause.place ? to_string(verdict.cause.place) : "nowhere";
  return fmt::format("{} {} {} [{}] [{}]", verdict.kind, dist::name(verdict.cause.kind), place,
                     fmt::join(verdict.ranks, ","), fmt::join(names, ","));
}

using Ddp = dist::DistributedDataParallel<Net>;
using DdpOfCritic = dist::DistributedDataParallel<Critic>;

class Trainer {
 public:
  Trainer(const Spec& spec, const dist::ProcessGroupPtr& group)
      : spec_(spec),
        now_{spec, group->rank(), false},
        net_(spec),
        critic_(critic_of(spec, net_)),
        group_(group),
        optimizers_(spec, net_, critic_) {
    net_->now = &now_;
    wrap();
    if (critic_) ddp_of_critic_.emplace(critic_, group);
    if (now_.does(Extra::LookingHook)) trainable().front().register_hook([](const Tensor&) { return Tensor(); });
  }

  std::string run() {
    std::string result;
    try {
      for (now_.step = 0; now_.step < spec_.steps; ++now_.step)
        step();
      result = values_of(net_, critic_);
    } catch (const dist::ReductionError& error) {
      result = told("ReductionError", error);
    } catch (const dist::ConsistencyError& error) {
      result = told("ConsistencyError", error);
    } catch (const dist::CollectiveError& error) {
      result = told("CollectiveError", error);
    } catch (const dist::Diagnosed& error) {
      result = told("Diagnosed", error);
    }
    note_warnings();
    return result + warnings_ + fmt::format("\nplanted {}", now_.planted_at);
  }

 private:
  static dist::DDPOptions options_of(const Spec& spec) {
    return {.find_unused_parameters = spec.mode == Mode::UnusedAllowed,
            .static_graph = spec.mode == Mode::StaticGraph,
            .gradient_as_bucket_view = spec.views,
            .bucket_cap_mb = spec.bucket_mb,
            .first_bucket_mb = spec.bucket_mb};
  }

  // The second call wraps the net while the first wrapper is still alive.
  void wrap() {
    auto ddp = std::make_unique<Ddp>(net_, group_, options_of(spec_));
    if (ddp_) {
      note_warnings();
      backwards_before_ += ddp_->reducer().past().rounds;
    }
    if (spec_.old_stays) old_ = std::move(ddp_);
    ddp_ = std::move(ddp);
    if (spec_.own_hook || spec_.fault.what == Fault::SummingHook) register_hook();
  }

  void note_warnings() {
    for (const dist::Verdict& verdict : ddp_->advisories()) {
      if (verdict.severity != dist::Severity::Note)
        warnings_ += fmt::format("\nwarning {} {}", backwards_before_ + verdict.iteration, in_a_line(verdict));
    }
  }

  void register_hook() {
    ddp_->register_comm_hook(
        dist::make_comm_hook("own", [this](dist::ProcessGroup& group, const dist::GradBucket& bucket) {
          const bool sums = now_.is_faulty(Fault::SummingHook);
          return group.all_reduce(bucket.buffer(), {.op = sums ? dist::ReduceOp::Sum : dist::ReduceOp::Avg});
        }));
  }

  std::vector<Tensor> trainable() const {
    std::vector<Tensor> found;
    for (const Tensor& parameter : net_->parameters()) {
      if (parameter.requires_grad()) found.push_back(parameter);
    }
    return found;
  }

  void step() {
    if (now_.step > 0 && now_.step == spec_.wrapped_again) wrap();
    if (!now_.is_faulty(Fault::NotCleared)) optimizers_.zero_grad();
    change_net();
    const int micro_batches = spec_.micro_batches + (now_.is_faulty(Fault::MoreMicroBatches) ? 1 : 0);
    for (int m = 0; m < micro_batches; ++m) {
      std::optional<Ddp::NoSync> local;
      std::optional<DdpOfCritic::NoSync> critic_is_local;
      const bool last = m + 1 == micro_batches;
      if (!last && spec_.second == Second::InLoss) critic_is_local.emplace(ddp_of_critic_->no_sync());
      if (!last || now_.is_faulty(Fault::LastInNoSync)) local.emplace(ddp_->no_sync());
      micro_batch(m);
    }
    if (spec_.second == Second::After)
      mean(square((*ddp_of_critic_)(batch_of(now_.rank, now_.step, 0)) - 1.0)).backward();
    after_backward();
    if (now_.is_faulty(Fault::OtherLearningRate)) optimizers_.first().set_lr(0, 0.07);
    optimizers_.step(now_);
  }

  // Changes that a program makes to the net after wrapping.
  void change_net() {
    const size_t module = std::min(spec_.fault.layer, net_->layers.size() - 1);
    if (now_.does(Extra::SwapsBack)) evaluate_with_other_weights();
    if (now_.is_faulty(Fault::WrittenWeight)) {
      const NoGradGuard no_grad;
      now_.blame_next_line({Fault::WrittenWeight});
      net_->layers[module]->weight.mul_(1.5);
    }
    if (now_.is_faulty(Fault::FrozenLayer)) {
      for (const Tensor& parameter : net_->layers[module]->parameters()) {
        now_.blame_next_line({Fault::FrozenLayer});
        parameter.requires_grad_(false);
      }
    }
    if (now_.is_faulty(Fault::ThawedLayer)) {
      for (const Tensor& parameter : net_->layers[module]->parameters()) {
        now_.blame_next_line({Fault::ThawedLayer});
        parameter.requires_grad_(true);
      }
    }
    if (now_.is_faulty(Fault::ReplacedLayer)) net_->replace(module);
  }

  void evaluate_with_other_weights() {
    const NoGradGuard no_grad;
    const Tensor weight = net_->layers.front()->weight;
    const Tensor own = weight.clone();
    weight.zero_();
    loss_of(net_->forward(batch_of(now_.rank, 99, 0))).item<double>();
    weight.copy_(own);
  }

  void micro_batch(int m) {
    std::vector<Tensor> heads = (*ddp_)(batch_of(now_.rank, now_.step, m));
    if (now_.does(Extra::Probe)) train_other_model(batch_of(now_.rank, now_.step, m) + heads_or_zero(heads).detach());
    if (now_.does(Extra::Evaluation)) loss_of((*ddp_)(batch_of(now_.rank, 99, m))).item<double>();
    if (now_.is_faulty(Fault::ConstantLoss) && m + 1 == spec_.micro_batches) {
      Tensor all = heads.front();
      for (size_t h = 1; h < heads.size(); ++h)
        all = all + heads[h];
      now_.blame_next_line({Fault::ConstantLoss});
      train_other_model(all.detach());
      return;
    }
    if (spec_.second == Second::InLoss) heads.back() = (*ddp_of_critic_)(heads.back());
    const Tensor loss = loss_of(heads) / static_cast<double>(spec_.micro_batches);
    now_.blame_next_line({Fault::SkippedLayer, Fault::LastInNoSync});
    loss.backward();
  }

  static Tensor heads_or_zero(const std::vector<Tensor>& heads) {
    return heads.front().defined() ? heads.front() : zeros({5, kWidth}, kFloat64);
  }

  void after_backward() {
    if (now_.does(Extra::LaterBackward)) train_other_model(batch_of(now_.rank, now_.step, 7));
    const std::vector<Tensor> parameters = trainable();
    for (const Tensor& parameter : parameters) {
      if (!parameter.grad().defined()) continue;
      if (now_.does(Extra::CloneGrads) && spec_.fault.what != Fault::LastInNoSync)
        parameter.set_grad(parameter.grad().clone());
      if (now_.does(Extra::ScaleGrads)) parameter.grad().mul_(2.0).mul_(0.5);
    }
    if (now_.does(Extra::Clip)) optim::clip_grad_norm_(parameters, 1e9);
    const Tensor weight = net_->layers[std::min(spec_.fault.layer, net_->layers.size() - 1)]->weight;
    if (now_.is_faulty(Fault::EditedGradient)) {
      now_.blame_next_line({Fault::EditedGradient});
      weight.grad().mul_(1.5);
    }
    if (now_.is_faulty(Fault::OwnGradient)) {
      const Tensor own = weight.grad() * (1.0 + now_.rank);
      now_.blame_next_line({Fault::OwnGradient});
      weight.set_grad(own);
    }
  }

  template <class Error>
  std::string told(const char* type, const Error& error) const {
    std::string text = fmt::format("error {} {}", now_.step, type);
    for (const dist::Verdict& verdict : error.verdicts())
      text += "\n" + in_a_line(verdict);
    std::istringstream lines(dynamic_cast<const std::exception&>(error).what());
    for (std::string line; std::getline(lines, line);)
      text += "\n| " + line;
    return text;
  }

  const Spec& spec_;
  Now now_;
  Net net_;
  Critic critic_;
  dist::ProcessGroupPtr group_;
  std::unique_ptr<Ddp> old_, ddp_;
  std::optional<DdpOfCritic> ddp_of_critic_;
  Optimizers optimizers_;
  std::string warnings_;
  uint64_t backwards_before_ = 0;  // made by previous wrappers
};

}  // namespace

std::string train(const Spec& spec, const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  return Trainer(spec, group).run();
}

std::string train_alone(const Spec& spec) {
  manual_seed(1);
  Now now{spec, 0, true};
  Net net(spec);
  Critic critic = critic_of(spec, net);
  net->now = &now;
  const Optimizers optimizers(spec, net, critic);
  for (now.step = 0; now.step < spec.steps; ++now.step) {
    optimizers.zero_grad();
    for (now.rank = 0; now.rank < spec.ranks; ++now.rank) {
      for (int m = 0; m < spec.micro_batches; ++m) {
        std::vector<Tensor> heads = net->forward(batch_of(now.rank, now.step, m));
        if (spec.second == Second::InLoss) heads.back() = critic(heads.back());
        (loss_of(heads) / static_cast<double>(spec.micro_batches * spec.ranks)).backward();
      }
      if (spec.second == Second::After)
        (mean(square(critic(batch_of(now.rank, now.step, 0)) - 1.0)) / static_cast<double>(spec.ranks)).backward();
    }
    optimizers.step(now);
  }
  return values_of(net, critic);
}

}  // namespace brigade::test::fuzz
