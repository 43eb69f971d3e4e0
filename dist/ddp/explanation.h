// What a wrapper knows of each of its parameters: who used it, when it was reduced, who holds it,
// who wrote it last. Made by explain() (distributed_data_parallel.h).
#pragma once

#include <brigade/core/place.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace brigade::dist {

struct ExplainedParameter {
  std::string name;  // "encoder.0.weight"
  int64_t bytes = 0;
  // "reduced", "reduced, by several wrappers", "ignored", "frozen", "frozen after wrapping", "trainable, unknown to the reducer" (it
  // was added, thawed or put in another's place after wrapping), "reduced, no longer in the module".
  std::string state;
  bool is_reduced = false;  // by one wrapper or several; also where the module has it no longer

  // --- In the latest reduced backward (Explanation::backward). Empty where it is not known, and for
  // a parameter that is not reduced.
  std::optional<bool> used;                 // by this rank
  std::optional<int> users;                 // how many ranks used it
  std::optional<std::vector<int>> used_by;  // which ranks did
  // Its bucket: buckets are reduced in the order of their numbers, from 0.
  std::optional<uint32_t> bucket;
  // Its place, from 0, in the order in which gradients became ready on this rank; empty where its
  // gradient did not.
  std::optional<uint32_t> ready;

  // --- Over all backwards.
  uint64_t last_used = 0;        // number of the latest reduced one in which a rank used it; 0: none
  uint32_t local_backwards = 0;  // under no_sync, whose gradients are not reduced yet
  Place local_at;                // the latest of those
  // Optimizers of this thread that hold it: "SGD", and "SGD#2" for the second that lives.
  std::vector<std::string> optimizers;
  // What wrote its values last: "step of SGD", an operation ("mul_"), "wrapping" (nothing since);
  // "" where it is not known: written without a line, on another thread, or without `diagnosis`.
  std::string written_by;
  Place written_at;  // where; of a write without a line the latest that is known, before it
};

struct Explanation {
  std::string title;  // "DDP(Net)"
  int rank = 0;
  int ranks = 1;
  // The latest backward whose buckets all came back: its number, from 1 (0: there was none), the
  // line of its call, and whether all ranks raised an error at its end.
  uint64_t backward = 0;
  Place backward_at;
  bool failed = false;
  bool broken = false;  // the group has failed since: nothing is reduced any more
  // Those of the module in the order of registration, then those that it has no longer.
  std::vector<ExplainedParameter> parameters;

  // One line per parameter, for people.
  std::string table() const;
  // {"title", "rank", "ranks", "backward", "backward_at": {"file", "line"}, "failed", "broken",
  // "parameters": [{"name", "bytes", "state", ...}]}: members under their own names, null where
  // they are empty.
  std::string json() const;
};

}  // namespace brigade::dist
