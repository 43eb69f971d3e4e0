// Do all ranks hold the same numbers? Parameters, buffers and gradients are compared by hash; where
// they differ, the first tensor, element and ranks are found.
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
  Tensor tensor;  // may be undefined (a gradient that is not there); that is compared too
};

struct ConsistencyReport {
  std::vector<Verdict>
      verdicts;        // one per tensor that differs, the first with element and values; the same on all ranks
  std::string legend;  // of the ranks, where those of a subgroup have other global numbers (RankNames::legend)
  bool consistent() const noexcept { return verdicts.empty(); }
  // Throws ConsistencyError with all verdicts, and the legend, unless consistent().
  void raise_if_inconsistent() const;
};

// Collective; the same names on every rank. One all_gather of 8 bytes per tensor when all is well.
ConsistencyReport compare_over_ranks(ProcessGroup& group, std::span<const CheckedTensor> tensors,
                                     SourceLocation where = SourceLocation::current());

// The parameters, buffers and gradients of a module. Collective.
ConsistencyReport verify_consistency(ProcessGroup& group, const nn::Module& module,
                                     SourceLocation where = SourceLocation::current());
template <nn::Holder H>
ConsistencyReport verify_consistency(ProcessGroup& group, const H& module,
                                     SourceLocation where = SourceLocation::current()) {
  return verify_consistency(group, *module.ptr(), where);
}

}  // namespace brigade::dist
