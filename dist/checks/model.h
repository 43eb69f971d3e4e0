// At construction: do all ranks hold the same model? And the copy of rank 0's values to the others.
#pragma once

#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/work.h>

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
  std::string title;                   // of the wrapper: ReducerOptions::title
  std::vector<ReplicaOption> options;  // the same names on every rank
  std::vector<ReplicaTensor> tensors;
};

// Compares the options, then names, order, shapes, dtypes and requires_grad over all ranks, and the
// order in which the ranks make wrappers of one class. Throws the same ConsistencyError on every
// rank, which names the first that differs and who holds what. Collective.
void check_same_replicas(ProcessGroup& group, const Replica& replica, SourceLocation where);

// Copies many tensors from the root in few collectives: they are packed into flat chunks of up to
// 25 MiB. A tensor that holds the root's bytes already is not written, so its version does not
// move. Collective; the same tensors on every rank.
void broadcast_coalesced(ProcessGroup& group, const std::vector<Tensor>& tensors, int root,
                         std::string_view description, SourceLocation where = SourceLocation::current());

// The same, begun: the root's bytes are taken now; on the other ranks a tensor is written when its
// Work is waited for. In this order.
std::vector<WorkPtr> begin_broadcast_coalesced(ProcessGroup& group, const std::vector<Tensor>& tensors, int root,
                                               std::string_view description,
                                               SourceLocation where = SourceLocation::current());

}  // namespace brigade::dist
