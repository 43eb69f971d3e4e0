// Checks at construction that all ranks hold the same model.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <string>
#include <vector>

namespace brigade::dist {

// One tensor of a model, as it takes part in the check.
struct ReplicaTensor {
  std::string kind;  // "parameter" or "buffer"
  std::string name;
  Tensor tensor;
};

// A setting of the wrapper that must be the same on all ranks.
struct ReplicaOption {
  std::string name;
  std::string value;  // as text
};

// A wrapper under construction.
struct Replica {
  std::string module;                  // class name
  Owner wrapper;                       // ReducerOptions::owner
  std::vector<ReplicaOption> options;  // same names on every rank
  std::vector<ReplicaTensor> tensors;
};

// Compares over all ranks the options, then names, order, shapes, dtypes and requires_grad, and the order in which
// the ranks construct wrappers of one class. Throws the same ConsistencyError on every rank, naming the first
// difference and which ranks hold which value. Collective.
void check_same_replicas(ProcessGroup& group, const Replica& replica, SourceLocation where);

}  // namespace brigade::dist
