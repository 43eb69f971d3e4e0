// Finds the operation that a non-finite number came from, once one has been seen.
#include <brigade/autograd/detail/non_finite.h>

#include <brigade/autograd/meta.h>
#include <brigade/kernels/bucket.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <unordered_set>

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

}  // namespace

// Called for every node of every backward, so cache the answers by address: names of operations are not moved.
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

bool holds_non_finite(const Tensor& tensor) {
  if (!can_be_read(tensor)) return false;
  return !std::isfinite(kernels::sum_of_squares(tensor));
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
