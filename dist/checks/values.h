// Checks that all ranks hold the same numbers. Compares parameters, buffers and gradients by hash; where they differ,
// finds the first tensor, the element and the ranks.
#pragma once

#include <brigade/dist/errors/verdict.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/nn/module.h>

#include <span>
#include <string>
#include <vector>

namespace brigade::dist {

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

}  // namespace brigade::dist
