// The model of a random program, and what the program does with it in addition to training.
#pragma once

#include "spec.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/tensor.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/nn/nn.h>

#include <functional>
#include <initializer_list>
#include <stdexcept>
#include <vector>

namespace brigade::test::fuzz {

inline constexpr int64_t kWidth = 3;

// The current position of a rank in the program. `plain`: one process without the fault, for the reference.
struct Now {
  const Spec& spec;
  int rank;
  bool plain;
  int step = 0;
  bool evaluates = false;   // a forward that is not trained on
  bool fails = false;       // an evaluation that throws
  uint32_t planted_at = 0;  // the line

  bool is_faulty(Fault fault) const { return is_planted(fault) || is_here(spec.allowed, fault); }
  bool is_faulty(Fault fault, size_t layer) const {
    return (is_planted(fault) && spec.fault.layer == layer) ||
           (is_here(spec.allowed, fault) && spec.allowed.layer == layer);
  }
  // Notes the line after the caller's if the program's fault is one of `faults` and is planted in this step and rank.
  void blame_next_line(std::initializer_list<Fault> faults, SourceLocation where = SourceLocation::current()) {
    for (const Fault fault : faults) {
      if (is_planted(fault)) planted_at = where.line() + 1;
    }
  }
  bool does(Extra extra) const;
  bool does(Extra extra, size_t layer) const;

 private:
  bool is_planted(Fault fault) const { return !plain && is_here(spec.fault, fault); }
  bool is_here(const Planted& planted, Fault fault) const {
    return planted.what == fault && (planted.ranks >> rank & 1U) &&
           (planted.repeats ? planted.step <= step : planted.step == step);
  }
};

struct BadSample : std::runtime_error {
  BadSample() : std::runtime_error("sample 17 has no label") {}
};

// The module of a layer.
struct UnitImpl : nn::Module {
  Kind kind;
  Tensor weight, bias;                                        // of Linear and Affine
  nn::Linear base{nullptr}, down{nullptr}, up{nullptr};       // of Adapter
  nn::Linear first{nullptr}, second{nullptr}, gate{nullptr};  // of Experts

  explicit UnitImpl(Kind kind);
  // `idle`: without the second expert.
  Tensor forward(const Tensor& x, bool idle = false);
  // The parameter that faults write to.
  Tensor marked() const;
};
BRIGADE_MODULE(Unit);

struct NetImpl : nn::Module {
  std::vector<Unit> layers;  // some of them are the same module
  Now* now = nullptr;

  explicit NetImpl(const Spec& spec);
  // Returns the results that enter the loss.
  std::vector<Tensor> forward(const Tensor& x);
  // Puts a new layer in the place of a module.
  void replace(size_t module);

 private:
  Tensor result_of(size_t layer, const Tensor& in);
  void look_at(size_t layer, const Tensor& result) const;
};
BRIGADE_MODULE(Net);

// The second model: a layer of its own, after one of the net's layers if that is shared.
struct CriticImpl : nn::Module {
  Unit shared{nullptr};
  nn::Linear own{nullptr};

  CriticImpl(const Spec& spec, const Net& net);
  Tensor forward(const Tensor& x) { return own(shared ? brigade::tanh(shared(x)) : x); }
};
BRIGADE_MODULE(Critic);

// --- What a healthy program does in addition to its training (activities.cpp)

Tensor batch_of(int rank, int step, int micro_batch);
Tensor loss_of(const std::vector<Tensor>& results);
// Trains a model of its own for a step.
void train_other_model(const Tensor& input);

// The activities of a rank, in the order of a step.
class Activities {
 public:
  using Forward = std::function<std::vector<Tensor>(const Tensor&)>;

  Activities(Now& now, Net net, dist::ProcessGroupPtr group)
      : now_(now), net_(std::move(net)), group_(std::move(group)) {}

  void before_training();
  void before_forward(const Forward& wrapped);
  void after_forward(const std::vector<Tensor>& heads, const Forward& wrapped, int micro_batch);
  void after_loss(const Tensor& loss);
  void after_backward(const std::vector<Tensor>& parameters);
  void after_step();

 private:
  void evaluate(const Forward& forward);
  void evaluate_with_other_weights();
  void follow_weights();

  Now& now_;
  Net net_;
  dist::ProcessGroupPtr group_;
  std::vector<Tensor> average_;
  Net teacher_{nullptr};
  Now of_teacher_ = now_;
  std::vector<Tensor> losses_;
};

}  // namespace brigade::test::fuzz
