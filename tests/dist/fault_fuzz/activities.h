// What a healthy program does in addition to its training.
#pragma once

#include "net.h"

#include <brigade/dist/groups/process_group.h>

#include <functional>
#include <vector>

namespace brigade::test::fuzz {

Tensor batch_of(int rank, int step, int micro_batch);
Tensor loss_of(const std::vector<Tensor>& results);
// Trains a model of its own for a step.
void train_other_model(const Tensor& input);

// The activities of a rank, in the order of a step.
class Activities {
 public:
  using Forward = std::function<std::vector<Tensor>(const Tensor&)>;

  Activities(Now& now, Net net, dist::ProcessGroupPtr group) : now_(now), net_(std::move(net)), group_(std::move(group)) {}

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
