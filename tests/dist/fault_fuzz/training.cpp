// The training loop of a random program, on a rank and in one process. Notes the line of the planted fault.
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
    if (spec.rule == Rule::ByHand) {
      written_ = parameters;
    } else {
      all_.push_back(made(spec.rule, {parameters.begin(), middle}));
      if (spec.two_optimizers) all_.push_back(made(spec.rule, {middle, parameters.end()}));
    }
    if (spec.scheduler) {
      for (const auto& optimizer : all_)
        schedulers_.push_back(std::make_unique<optim::StepLR>(*optimizer, 1, 0.5));
    }
    if (critic) critic_ = made(Rule::SGD, critic->own->parameters());
  }

  void zero_grad() const {
    for (const auto& optimizer : all_)
      optimizer->zero_grad();
    for (const Tensor& parameter : written_)
      parameter.set_grad(Tensor());
    if (critic_) critic_->zero_grad();
  }
  void step(Now& now) const {
    for (const auto& optimizer : all_) {
      optimizer->step();
    }
    step_by_hand(now);
    if (critic_) critic_->step();
    for (const auto& scheduler : schedulers_) {
      scheduler->step();
      now.blame_next_line({Fault::OtherSchedule});
      if (now.is_faulty(Fault::OtherSchedule)) scheduler->step();
    }
  }
  void change_rate(Now& now) const {
    if (all_.empty()) return;
    now.blame_next_line({Fault::OtherLearningRate});
    all_.front()->set_lr(0, 0.07);
  }

 private:
  static std::unique_ptr<optim::Optimizer> made(Rule rule, const std::vector<Tensor>& parameters) {
    switch (rule) {
      case Rule::SGD: return std::make_unique<optim::SGD>(parameters, optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
      case Rule::Adam: return std::make_unique<optim::Adam>(parameters, optim::AdamOptions{.lr = 0.01});
      case Rule::RMSprop: return std::make_unique<optim::RMSprop>(parameters, optim::RMSpropOptions{.lr = 0.01});
      case Rule::Adagrad: return std::make_unique<optim::Adagrad>(parameters, optim::AdagradOptions{.lr = 0.01});
      case Rule::ByHand: break;
    }
    return nullptr;
  }

  void step_by_hand(Now& now) const {
    const NoGradGuard no_grad;
    const double rate = now.is_faulty(Fault::OtherLearningRate) ? 0.07 : 0.1;
    for (const Tensor& parameter : written_) {
      if (!parameter.grad().defined()) continue;
      now.blame_next_line({Fault::OtherLearningRate});
      parameter.sub_(parameter.grad(), rate);
    }
  }

  std::vector<std::unique_ptr<optim::Optimizer>> all_;
  std::vector<Tensor> written_;  // without an optimizer
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
        optimizers_(spec, net_, critic_),
        activities_(now_, net_, group) {
    net_->now = &now_;
    if (now_.is_faulty(Fault::ReplacedBefore)) net_->replace(spec.fault.layer);
    wrap();
    if (critic_) ddp_of_critic_.emplace(critic_, group);
    if (now_.does(Extra::LookingHook)) trainable().front().register_hook([](const Tensor&) { return Tensor(); });
    if (now_.is_faulty(Fault::ScalingHook)) marked().register_hook([](const Tensor& grad) { return grad * 1e4; });
  }

  std::string run() {
    std::string result;
    try {
      activities_.before_training();
      for (now_.step = 0; now_.step < steps(); ++now_.step)
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

  // A rank that skips a batch takes another one.
  int steps() const {
    const Planted& fault = spec_.fault;
    if (!(fault.ranks >> now_.rank & 1U)) return spec_.steps;
    if (fault.what == Fault::EarlyStop) return fault.step;
    return spec_.steps + (fault.what == Fault::CaughtException ? 1 : 0);
  }

  Tensor marked() const { return net_->layers[std::min(spec_.fault.layer, net_->layers.size() - 1)]->marked(); }

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
      try {
        micro_batch(m);
      } catch (const BadSample&) {
        if (spec_.fault.what != Fault::CaughtException) throw;
        return;  // with the next batch
      }
    }
    if (spec_.second == Second::After)
      mean(square((*ddp_of_critic_)(batch_of(now_.rank, now_.step, 0)) - 1.0)).backward();
    after_backward();
    if (now_.is_faulty(Fault::OtherLearningRate)) optimizers_.change_rate(now_);
    if (!now_.is_faulty(Fault::SkippedStep)) optimizers_.step(now_);
    now_.blame_next_line({Fault::LoneCollective});
    if (now_.is_faulty(Fault::LoneCollective)) group_->all_reduce(ones({1}))->wait();
    activities_.after_step();
  }

  // Changes that a program makes to the net after wrapping.
  void change_net() {
    const size_t module = std::min(spec_.fault.layer, net_->layers.size() - 1);
    if (now_.is_faulty(Fault::WrittenWeight)) {
      const NoGradGuard no_grad;
      now_.blame_next_line({Fault::WrittenWeight});
      marked().mul_(1.5);
    }
    if (now_.is_faulty(Fault::LoadedWeights)) {
      nn::Named<Tensor> state = net_->state_dict();
      for (auto& [name, tensor] : state)
        tensor = tensor * 1.25 + 0.1;
      now_.blame_next_line({Fault::LoadedWeights});
      net_->load_state_dict(state);
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

  void micro_batch(int m) {
    const auto wrapped = [this](const Tensor& x) { return (*ddp_)(x); };
    activities_.before_forward(wrapped);
    const Tensor x = batch_of(now_.rank, now_.step, m);
    std::vector<Tensor> heads;
    if (now_.does(Extra::BareForward)) {
      heads = net_(x);
    } else {
      now_.blame_next_line({Fault::CaughtException});
      heads = (*ddp_)(x);
    }
    activities_.after_forward(heads, wrapped, m);
    if (now_.is_faulty(Fault::ConstantLoss) && m + 1 == spec_.micro_batches) {
      Tensor all = heads.front();
      for (size_t h = 1; h < heads.size(); ++h)
        all = all + heads[h];
      activities_.after_loss(mean(all));
      now_.blame_next_line({Fault::ConstantLoss});
      train_other_model(all.detach());
      return;
    }
    if (spec_.second == Second::InLoss) heads.back() = (*ddp_of_critic_)(heads.back());
    const Tensor loss = loss_of(heads) / static_cast<double>(spec_.micro_batches);
    activities_.after_loss(loss);
    if (now_.is_faulty(Fault::RepeatedBackward)) loss.backward({.retain_graph = true});
    now_.blame_next_line({Fault::SkippedLayer, Fault::LastInNoSync, Fault::IdleExpert, Fault::RepeatedBackward});
    loss.backward();
  }

  void after_backward() {
    const std::vector<Tensor> parameters = trainable();
    activities_.after_backward(parameters);
    if (now_.is_faulty(Fault::ClippedGradients)) {
      now_.blame_next_line({Fault::ClippedGradients});
      optim::clip_grad_norm_(parameters, 1e-3);
    }
    if (now_.is_faulty(Fault::EditedGradient)) {
      now_.blame_next_line({Fault::EditedGradient});
      marked().grad().mul_(1.5);
    }
    if (now_.is_faulty(Fault::OwnGradient)) {
      const Tensor own = marked().grad() * (1.0 + now_.rank);
      now_.blame_next_line({Fault::OwnGradient});
      marked().set_grad(own);
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
  Activities activities_;
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
