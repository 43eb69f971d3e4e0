// The activities of healthy programs; none of them changes what is trained.
#include "net.h"

#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>
#include <brigade/optim/optim.h>

#include <stdexcept>

namespace brigade::test::fuzz {

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

void Activities::before_training() {
  if (now_.does(Extra::SanityCheck)) evaluate([this](const Tensor& x) { return net_->forward(x); });
}

void Activities::before_forward(const Forward& wrapped) {
  const std::vector<Tensor> parameters = net_->parameters();
  if (now_.does(Extra::SwapsBack)) evaluate_with_other_weights();
  if (now_.does(Extra::EvaluateBare)) evaluate([this](const Tensor& x) { return net_->forward(x); });
  if (now_.does(Extra::EvaluateWrapped)) evaluate(wrapped);
  if (now_.does(Extra::CaughtForward)) {
    now_.evaluates = now_.fails = true;
    try {
      net_->forward(batch_of(now_.rank, 99, 0));
    } catch (const std::runtime_error&) {
    }
    now_.evaluates = now_.fails = false;
  }
  for (const Tensor& parameter : parameters) {
    if (now_.does(Extra::LogWeights)) sum(square(parameter)).item<double>();
    if (now_.does(Extra::Histogram)) parameter.to_vector<double>();
  }
  if (now_.does(Extra::SaveAndLoad)) {
    nn::Named<Tensor> state = net_->state_dict();
    for (auto& [name, tensor] : state)
      tensor = tensor.clone();
    net_->load_state_dict(state);
  }
  if (now_.does(Extra::Barrier)) group_->barrier();
}

void Activities::after_forward(const std::vector<Tensor>& heads, const Forward& wrapped, int micro_batch) {
  const Tensor input = batch_of(now_.rank, now_.step, micro_batch);
  const Tensor& first = heads.front();
  if (now_.does(Extra::Probe)) train_other_model(first.defined() ? input + first.detach() : input);
  if (now_.does(Extra::Evaluation)) loss_of(wrapped(batch_of(now_.rank, 99, micro_batch))).item<double>();
  if (now_.does(Extra::Accuracy) && first.defined()) mean(gt(first, input).to(kFloat64)).item<double>();
  if (now_.does(Extra::Teacher)) follow_weights();
  if (now_.does(Extra::CaughtError)) {
    try {
      if (first.sizes() != input.sizes() || now_.step >= 0) throw std::runtime_error("no connection to the log");
    } catch (const std::runtime_error&) {
    }
  }
}

void Activities::after_loss(const Tensor& loss) {
  if (now_.does(Extra::KeepsLosses)) losses_.push_back(loss);
  if (now_.does(Extra::ReduceMetric)) group_->all_reduce(loss.detach().clone())->wait();
}

void Activities::after_backward(const std::vector<Tensor>& parameters) {
  if (now_.does(Extra::LaterBackward)) train_other_model(batch_of(now_.rank, now_.step, 7));
  for (const Tensor& parameter : parameters) {
    if (!parameter.grad().defined()) continue;
    if (now_.does(Extra::CloneGrads) && now_.spec.fault.what != Fault::LastInNoSync)
      parameter.set_grad(parameter.grad().clone());
    if (now_.does(Extra::ScaleGrads)) parameter.grad().mul_(2.0).mul_(0.5);
    if (now_.does(Extra::LogGradients)) sum(square(parameter.grad())).item<double>();
  }
  if (now_.does(Extra::Clip)) optim::clip_grad_norm_(parameters, 1e9);
}

void Activities::after_step() {
  if (now_.does(Extra::Decision)) {
    const Tensor decision = full({1}, now_.rank == 0 ? 1.0 : 0.0);
    group_->broadcast(decision)->wait();
  }
  if (!now_.does(Extra::AverageWeights)) return;
  const NoGradGuard no_grad;
  const std::vector<Tensor> parameters = net_->parameters();
  if (average_.empty()) {
    for (const Tensor& parameter : parameters)
      average_.push_back(parameter.clone());
  }
  for (size_t i = 0; i < average_.size(); ++i)
    average_[i].mul_(0.9).add_(parameters[i], 0.1);
}

void Activities::evaluate(const Forward& forward) {
  const NoGradGuard no_grad;
  now_.evaluates = true;
  net_->eval();
  loss_of(forward(batch_of(now_.rank, 99, 0))).item<double>();
  net_->train();
  now_.evaluates = false;
}

void Activities::evaluate_with_other_weights() {
  const NoGradGuard no_grad;
  const Tensor weight = net_->layers.front()->marked();
  const Tensor own = weight.clone();
  weight.zero_();
  evaluate([this](const Tensor& x) { return net_->forward(x); });
  weight.copy_(own);
}

void Activities::follow_weights() {
  const NoGradGuard no_grad;
  if (!teacher_) {
    teacher_ = Net(now_.spec);
    of_teacher_.plain = true;
    teacher_->now = &of_teacher_;
  }
  const std::vector<Tensor> own = teacher_->parameters();
  const std::vector<Tensor> parameters = net_->parameters();
  for (size_t i = 0; i < own.size() && i < parameters.size(); ++i)
    own[i].mul_(0.99).add_(parameters[i], 0.01);
  loss_of(teacher_->forward(batch_of(now_.rank, 98, 0))).item<double>();
}

}  // namespace brigade::test::fuzz
