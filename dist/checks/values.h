// Checks that all ranks hold the same numbers, and at construction the same model.
#pragma once

#include <brigade/dist/errors/verdict.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/nn/module.h>

#include <span>
#include <string>
#include <vector>

namespace brigade::dist {

// --- Checks that all ranks hold the same numbers. Compares parameters, buffers and gradients by hash; where they
// differ, finds the first tensor, the element and the ranks.

struct CheckedTensor {
  std::string kind;  // "parameter", "buffer", "gradient"
  std::string name;
  Tensor tensor;  // may be undefined (a missing gradient); that is compared too
};

struct ConsistencyReport {
  std::vector<Verdict> verdicts;  // one per differing tensor, the first with element and values; the same on all ranks
  std::string legend;             // maps a subgroup's ranks to global ranks where they differ (RankNames::legend)
  bool consistent() const noexcept { return verdicts.empty(); }
  // Throws ConsistencyError with all verdicts and the legend, unless consistent().
  void raise_if_inconsistent() const;
};

// Collective; every rank passes the same names. Costs one all_gather of 8 bytes per tensor if there is no difference.
ConsistencyReport compare_over_ranks(ProcessGroup& group, std::span<const CheckedTensor> tensors,
                                     SourceLocation where = SourceLocation::current());

// Compares the parameters, buffers and gradients of a module. Collective.
ConsistencyReport verify_consistency(ProcessGroup& group, const nn::Module& module,
                                     SourceLocation where = SourceLocation::current());
template <nn::Holder H>
ConsistencyReport verify_consistency(ProcessGroup& group, const H& module,
                                     SourceLocation where = SourceLocation::current()) {
  return verify_consistency(group, *module.ptr(), where);
}

// --- Checks at construction that all ranks hold the same model.

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
