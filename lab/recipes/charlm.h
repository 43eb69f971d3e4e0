// The recipe `charlm`: a small GPT that learns to write Paradise Lost, letter by letter. After its 5
// epochs it needs 2.64 bits for a letter of the held-out text (below 2.7 is what to expect, though
// tests hold only a smaller network to a bound: tests/lab/charlm_test.cpp); the
// frequencies of letters alone would need 4.51, those of pairs of letters 3.49.
#pragma once

#include <brigade/lab/recipes/recipe.h>
#include <brigade/nn/gpt.h>

#include <cstdint>
#include <functional>

namespace brigade::lab {

// The network, and how its loop runs. The defaults are those of `brigade train charlm`.
struct CharlmSettings {
  int64_t block_size = 64, n_layer = 2, n_head = 4, n_embd = 96;
  double dropout = 0.05;
  bool checkpoint_blocks = true;
  int64_t micro_batches = 2;    // per step; only the backward of the last one is reduced
  bool shuffle = true;          // false: windows come in the order of the text
  int64_t sample_length = 400;  // letters that the trained network writes
  // Puts other values in place of those that the layers start with.
  std::function<void(nn::GPT& model)> start = {};
};

TrainResult train_charlm(const dist::ProcessGroupPtr& group, const TrainOptions& options,
                         const CharlmSettings& settings = {});

}  // namespace brigade::lab
