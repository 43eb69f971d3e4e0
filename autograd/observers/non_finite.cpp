// Finds the operation that a non-finite number came from: after it was seen, in what the graph has saved, or with
// observers of a backward, such as that of anomaly mode.
#include <brigade/autograd/detail/findings.h>

#include <brigade/autograd/engine_observer.h>
#include <brigade/autograd/grad_mode.h>
#include <brigade/autograd/listener.h>
#include <brigade/autograd/meta.h>
#include <brigade/autograd/tape.h>
#include <brigade/kernels/bucket.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/reduce.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace brigade::autograd::detail {
namespace {

bool can_be_read(const Tensor& tensor) {
  return tensor.defined() && is_floating_point(tensor.dtype()) && tensor.numel() > 0 && tensor.device() == Device() &&
         tensor.is_contiguous();
}

bool holds_nan(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    if (std::isnan(brigade::detail::element_as_double(tensor, i))) return true;
  }
  return false;
}

bool is_unbounded(const char* op) {
  static const std::unordered_set<std::string_view> ops{"sqrt",
                                                        "rsqrt",
                                                        "log",
                                                        "log2",
                                                        "log10",
                                                        "log1p",
                                                        "div",
                                                        "reciprocal",
                                                        "pow",
                                                        "exp",
                                                        "exp2",
                                                        "expm1",
                                                        "norm",
                                                        "std",
                                                        "var",
                                                        "acos",
                                                        "asin",
                                                        "tan",
                                                        "sinh",
                                                        "cosh",
                                                        "std_mean",
                                                        "prod",
                                                        "cosine_similarity",
                                                        "atan2",
                                                        "binary_cross_entropy",
                                                        "kl_div",
                                                        "cumprod"};
  return ops.contains(op);
}

// Whether the derivative has no bound: a finite gradient can leave the operation as an infinity. Called for every node
// of a backward, so cache the answers by address: names of operations are not moved.
bool has_unbounded_derivative(const char* op) noexcept {
  struct Answer {
    const char* op;
    bool is_unbounded;
  };
  constexpr size_t kAnswers = 128;
  constinit static thread_local std::array<Answer, kAnswers> answers{};
  Answer& answer = answers[(reinterpret_cast<uintptr_t>(op) / 4) % kAnswers];
  if (answer.op != op) answer = {op, is_unbounded(op)};
  return answer.is_unbounded;
}

// For a contiguous tensor in host memory; false for any other.
bool holds_non_finite(const Tensor& tensor) {
  if (!can_be_read(tensor)) return false;
  return !std::isfinite(kernels::sum_of_squares(tensor));
}

}  // namespace

Tensor result_of(const Node& node, std::span<const Tensor> results, uint32_t input) {
  if (results[input].defined() || !node.edges[input].leaf) return results[input];
  // The gradient may have been written directly to its destination.
  return static_cast<AutogradMeta*>(node.edges[input].leaf->autograd.get())->grad;
}

FirstNonFinite first_non_finite(std::span<const Tensor> roots) {
  std::vector<const Node*> open;
  std::unordered_set<const Node*> seen;
  for (const Tensor& root : roots)
    open.push_back(grad_fn(root));
  // The producer, with the lowest sequence number, of a NaN or else of an infinity.
  FirstNonFinite first;
  bool first_is_nan = false;
  uint64_t lowest = ~uint64_t{0};
  const auto consider = [&](const Node& user, const Tensor& saved) {
    if (!holds_non_finite(saved)) return;
    const bool is_nan = holds_nan(saved);
    const Node* maker = grad_fn(saved);
    // No history: data, or the node's own result. An infinity may be intended there, as in a mask.
    if (!maker && !is_nan && !saved.requires_grad()) return;
    const uint64_t sequence = maker ? maker->sequence : user.sequence;
    if (first_is_nan > is_nan || (first_is_nan == is_nan && sequence >= lowest)) return;
    lowest = sequence;
    first_is_nan = is_nan;
    first = {maker ? maker->op : user.op, maker ? maker->where : user.where, maker != nullptr, saved.dtype()};
  };
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (!node || !seen.insert(node).second) continue;
    node->for_each_saved([&](const Tensor& saved) { consider(*node, saved); });
    for (const Edge& edge : node->edges)
      open.push_back(edge.node.get());
  }
  if (first.op) return first;
  // The last operation saved finite values but its result is not finite, as with a mean of no elements.
  for (const Tensor& root : roots) {
    const Node* const maker = grad_fn(root);
    bool keeps_any = false;
    if (maker) maker->for_each_saved([&](const Tensor&) { keeps_any = true; });
    if (keeps_any && holds_non_finite(root)) return {maker->op, maker->where, true, root.dtype()};
  }
  return first;
}

}  // namespace brigade::autograd::detail

namespace brigade::autograd {
namespace {

bool finite(const Tensor& tensor) {
  if (!tensor.defined() || !is_floating_point(tensor.dtype()) || tensor.numel() == 0) return true;
  // Zero times every element is zero, unless one is not finite.
  const Tensor products = kernels::binary_scalar(kernels::contiguous(tensor), 0.0, kernels::BinaryOp::Mul, false);
  return brigade::detail::element_as_double(kernels::sum(products, {}), 0) == 0;
}

class ListenersSearch final : public EngineObserver {
 public:
  explicit ListenersSearch(std::vector<Listener*> listeners) : listeners_(std::move(listeners)) {}

  void on_node_run(const Node& node, std::span<const Tensor> gradients, std::span<const Tensor> results) override {
    if (listeners_.empty()) return;
    if (!std::ranges::all_of(gradients, finite)) return;  // it arrived non-finite
    for (uint32_t i = 0; i < node.edges.size(); ++i) {
      const Tensor result = detail::result_of(node, results, i);
      if (finite(result)) continue;
      for (Listener* listener : listeners_)
        listener->on_non_finite(node.op, node.where, result.dtype());
      listeners_.clear();
      return;
    }
  }

 private:
  std::vector<Listener*> listeners_;  // until one operation was found
};

// While a tape is kept: looks only at operations whose derivative has no bound.
class UnboundedDerivatives final : public EngineObserver {
  void on_node_run(const Node& node, std::span<const Tensor> gradients, std::span<const Tensor> results) override {
    detail::StoppedGradients& noticed = detail::stopped_gradients();
    if (noticed.non_finite_op || !(node.is_custom() || detail::has_unbounded_derivative(node.op))) return;
    for (uint32_t i = 0; i < node.edges.size(); ++i) {
      if (!detail::holds_non_finite(detail::result_of(node, results, i))) continue;
      if (std::ranges::any_of(gradients, detail::holds_non_finite)) return;  // it arrived non-finite
      noticed.non_finite_op = node.op;
      noticed.non_finite_at = node.where;
      return;
    }
  }
};

// --- Anomaly mode

bool has_nan(const Tensor& tensor) {
  if (!tensor.defined() || !is_floating_point(tensor.dtype()) || tensor.numel() == 0) return false;
  const Tensor different = kernels::compare(tensor, tensor, kernels::CompareOp::NotEqual);
  return brigade::detail::element_as_double(kernels::sum(kernels::cast(different, kFloat32), {}), 0) > 0;
}

class AnomalySearch final : public EngineObserver {
  void on_node_run(const Node& node, std::span<const Tensor> gradients, std::span<const Tensor> results) override {
    if (std::ranges::any_of(gradients, has_nan)) return;  // it arrived with a NaN
    for (uint32_t i = 0; i < node.edges.size(); ++i) {
      if (!node.edges[i].defined() || !has_nan(detail::result_of(node, results, i))) continue;
      throw AutogradError(node.where,
                          "Function '{}' returned nan values in its {}th output. The forward call is '{}' at {}; its "
                          "gradients by its results have no nan. Look at the values it was called with there",
                          node.name(), i, node.op, to_string(node.where));
    }
  }
};

}  // namespace

std::unique_ptr<EngineObserver> make_listeners_search(std::span<Listener* const> listeners) {
  std::vector<Listener*> looking;
  std::ranges::copy_if(listeners, std::back_inserter(looking), &Listener::looks_for_non_finite);
  return looking.empty() ? nullptr : std::make_unique<ListenersSearch>(std::move(looking));
}

std::unique_ptr<EngineObserver> make_unbounded_derivatives(const ObservedRun&) {
  return Tape::is_kept() ? std::make_unique<UnboundedDerivatives>() : nullptr;
}

std::unique_ptr<EngineObserver> make_anomaly_search(const ObservedRun&) {
  return AnomalyMode::is_enabled() ? std::make_unique<AnomalySearch>() : nullptr;
}

}  // namespace brigade::autograd
