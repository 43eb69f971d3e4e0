// The recipe `digits`: a small convolutional network (no batch norm, no dropout) on the UCI digits
// under DDP.
#pragma once

#include <brigade/dist/groups/process_group.h>
#include <brigade/lab/data_path.h>
#include <brigade/nn/nn.h>

#include <string>

namespace brigade::lab {

struct DigitsNetImpl : nn::Module {
  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::Linear fc1{nullptr}, fc2{nullptr};

  DigitsNetImpl();
  // [N, 1, 8, 8] -> logits [N, 10]
  Tensor forward(const Tensor& images);
  // The last hidden layer: [N, 1, 8, 8] -> [N, 64]. What other recipes compare images by.
  Tensor features(const Tensor& images);
};
BRIGADE_MODULE(DigitsNet);

// Trains it on this rank alone, the same on every rank: for recipes that need a network that knows
// digits (as a frozen feature net, or as the judge of what they make).
void train_classifier(DigitsNet& net, const Examples& examples, int epochs, uint64_t seed);

// A few steps of that network on made-up images; the trace of the last two.
std::string trace_digits(const dist::ProcessGroupPtr& group, double bucket_mb);

}  // namespace brigade::lab
