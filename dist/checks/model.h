// At construction: do all ranks hold the same model?
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

// A setting of the wrapper in which the ranks have to agree.
struct ReplicaOption {
  std::string name;
  std::string value;  // in words
};

// A wrapper that is being made.
struct Replica {
  std::string module;                  // the name of its class
  Owner wrapper;                       // ReducerOptions::owner
  std::vector<ReplicaOption> options;  // the same names on every rank
  std::vector<ReplicaTensor> tensors;
};

// Compares the options, then names, order, shapes, dtypes and requires_grad over all ranks, and the
// order in which the ranks make wrappers of one class. Throws the same ConsistencyError on every
// rank, which names the first that differs and who holds what. Collective.
void check_same_replicas(ProcessGroup& group, const Replica& replica, SourceLocation where);

}  // namespace brigade::dist
