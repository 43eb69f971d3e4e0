// The model of a random program.
#pragma once

#include "spec.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/tensor.h>
#include <brigade/nn/nn.h>

#include <initializer_list>
#include <vector>

namespace brigade::test::fuzz {

inline constexpr int64_t kWidth = 3;

// The current position of a rank in the program. `plain`: one process without the fault, for the reference.
struct Now {
  const Spec& spec;
  int rank;
  bool plain;
  int step = 0;
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
    return planted.what == fault && planted.step == step && (planted.ranks >> rank & 1U);
  }
};

struct NetImpl : nn::Module {
  std::vector<nn::Linear> layers;  // some of them are the same module
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
  nn::Linear shared{nullptr}, own{nullptr};

  CriticImpl(const Spec& spec, const Net& net);
  Tensor forward(const Tensor& x) { return own(shared ? brigade::tanh(shared(x)) : x); }
};
BRIGADE_MODULE(Critic);

}  // namespace brigade::test::fuzz
