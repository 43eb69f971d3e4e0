// Tracks the backwards that retained their graph, and whether it was used again or freed without use.
#include <brigade/autograd/backward.h>
#include <brigade/autograd/engine_observer.h>
#include <brigade/autograd/gathered_graph.h>

#include <cstdint>
#include <deque>
#include <set>
#include <utility>
#include <vector>

namespace brigade::autograd {
namespace {

// Backwards that retained their graph, except the oldest ones that were taken or dropped; the marks on nodes continue
// from `retained_before`.
struct Retained {
  RetainedGraph graph;
  size_t alive;  // of its nodes
  bool taken;
};
thread_local std::deque<Retained> retained;
thread_local uint64_t retained_before = 0;
// Lines whose graph was used again at least once: they retain it for that, even if not every time (a penalty in every
// 16th step).
thread_local std::set<std::pair<const char*, uint32_t>> used_again;

// The entry of the backward that retained the node's graph; null if there is none, or if it was dropped.
Retained* find(uint64_t index) noexcept {
  const bool known = index > retained_before && index - retained_before <= retained.size();
  return known ? &retained[index - retained_before - 1] : nullptr;
}

}  // namespace

class RetainedGraphs final : public EngineObserver {
 public:
  explicit RetainedGraphs(const ObservedRun& run) : keeps_(run.retains_graph), where_(run.where) {}

  void on_found(const Node& node) override {
    if (Retained* const kept = find(node.retained_by_)) kept->graph.used_again = true;
  }

  void on_ended(const GatheredGraph& gathered) override {
    if (!keeps_) return;
    RetainedGraph graph{where_, gathered.nodes().size(), 0, false};
    const auto index = static_cast<uint32_t>(retained_before + retained.size() + 1);
    for (const PlannedNode& planned : gathered.nodes()) {
      planned.node->retained_by_ = index;
      graph.bytes += planned.node->saved_bytes();
    }
    constexpr size_t kMost = 64;
    retained.push_back({graph, gathered.nodes().size(), false});
    if (retained.size() > kMost) {
      retained.pop_front();
      ++retained_before;
    }
  }

 private:
  bool keeps_;
  SourceLocation where_;
};

std::unique_ptr<EngineObserver> make_retained_graphs(const ObservedRun& run) {
  return run.retains_graph || !retained.empty() ? std::make_unique<RetainedGraphs>(run) : nullptr;
}

void note_freed(const Node& node) noexcept {
  if (Retained* const kept = find(node.retained_by_)) --kept->alive;
}

std::vector<RetainedGraph> take_retained_graphs() {
  std::vector<RetainedGraph> graphs;
  for (Retained& each : retained) {
    if (each.taken || (each.alive > 0 && !each.graph.used_again)) continue;
    each.taken = true;
    const std::pair line(each.graph.where.file_name(), each.graph.where.line());
    if (each.graph.used_again) used_again.insert(line);
    each.graph.used_again = used_again.contains(line);
    graphs.push_back(each.graph);
  }
  for (; !retained.empty() && retained.front().taken; ++retained_before)
    retained.pop_front();
  return graphs;
}

}  // namespace brigade::autograd
