// The formulas of the hinge, ranking, cosine, soft margin and triplet losses.
#include <brigade/autograd/ops/loss.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/activation.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/ops/elementwise.h>
#include <brigade/autograd/ops/reduce.h>

namespace brigade {
namespace {

using autograd::detail::reduced;

Tensor distance(const Tensor& a, const Tensor& b, double p, double eps, SourceLocation where) {
  return norm(add(sub(a, b, where), eps, where), p, {-1}, false, where);
}

}  // namespace

Tensor hinge_embedding_loss(const Tensor& x, const Tensor& target, double margin, Reduction reduction,
                            SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"hinge_embedding_loss">(where, x, target))
      return hinge_embedding_loss(in[0], in[1], margin, reduction, where);
  }
  // A label other than 1 and -1 gets both terms, as in PyTorch.
  const Tensor far = brigade::where(ne(target, 1, where), clamp_min(sub(margin, x, where), 0, where), 0.0, where);
  const Tensor near = brigade::where(ne(target, -1, where), x, 0.0, where);
  return reduced(add(far, near, where), reduction, where);
}

Tensor margin_ranking_loss(const Tensor& x1, const Tensor& x2, const Tensor& target, double margin, Reduction reduction,
                           SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"margin_ranking_loss">(where, x1, x2, target))
      return margin_ranking_loss(in[0], in[1], in[2], margin, reduction, where);
  }
  const Tensor wrong = mul(sub(x2, x1, where), target, where);
  return reduced(clamp_min(add(wrong, margin, where), 0, where), reduction, where);
}

Tensor cosine_embedding_loss(const Tensor& x1, const Tensor& x2, const Tensor& target, double margin,
                             Reduction reduction, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"cosine_embedding_loss">(where, x1, x2, target))
      return cosine_embedding_loss(in[0], in[1], in[2], margin, reduction, where);
  }
  // Each N may be 1. D does not broadcast: the lengths would be those of the vectors before.
  const auto fit = [](int64_t n, int64_t other) { return n == other || n == 1 || other == 1; };
  const bool are_vectors = (x1.dim() == 1 || x1.dim() == 2) && x2.dim() == x1.dim() && target.dim() == x1.dim() - 1 &&
                           x1.size(-1) == x2.size(-1);
  if (!are_vectors || (x1.dim() == 2 && !(fit(x1.size(0), x2.size(0)) && fit(x1.size(0), target.size(0)) &&
                                          fit(x2.size(0), target.size(0))))) {
    throw ShapeError(where,
                     "cosine_embedding_loss: expected two inputs [N, D] with labels [N], where an N may be 1, or [D] "
                     "with a label [], got {}, {} and {}",
                     describe(x1), describe(x2), describe(target));
  }
  const auto dot = [&](const Tensor& a, const Tensor& b) { return sum(mul(a, b, where), {-1}, false, where); };
  constexpr double kTiny = 1e-12;
  const Tensor lengths = mul(add(dot(x1, x1), kTiny, where), add(dot(x2, x2), kTiny, where), where);
  const Tensor cosine = div(dot(x1, x2), sqrt(lengths, where), where);
  const Tensor alike = brigade::where(eq(target, 1, where), sub(1.0, cosine, where), 0.0, where);
  const Tensor apart =
      brigade::where(eq(target, -1, where), clamp_min(sub(cosine, margin, where), 0, where), 0.0, where);
  return reduced(add(alike, apart, where), reduction, where);
}

Tensor soft_margin_loss(const Tensor& x, const Tensor& target, Reduction reduction, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"soft_margin_loss">(where, x, target))
      return soft_margin_loss(in[0], in[1], reduction, where);
  }
  // log(1 + exp(-x target)). A cross entropy with targets of 1 would lose precision: its gradient sigmoid - 1 cancels.
  return reduced(neg(logsigmoid(mul(x, target, where), where), where), reduction, where);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossOptions& options, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"triplet_margin_loss">(where, anchor, positive, negative))
      return triplet_margin_loss(in[0], in[1], in[2], options, where);
  }
  if (!(options.p > 0)) throw ValueError(where, "triplet_margin_loss: expected p above 0, got {}", options.p);
  if (!(options.margin > 0))
    throw ValueError(where, "triplet_margin_loss: expected a margin above 0, got {}", options.margin);
  if (anchor.dim() == 0 || anchor.dim() != positive.dim() || anchor.dim() != negative.dim()) {
    throw ShapeError(
        where,
        "triplet_margin_loss: expected anchor, positive and negative with the same number of dimensions, at least 1, "
        "got {}, {} and {}",
        describe(anchor), describe(positive), describe(negative));
  }
  const Tensor near = distance(anchor, positive, options.p, options.eps, where);
  Tensor far = distance(anchor, negative, options.p, options.eps, where);
  if (options.swap) far = minimum(far, distance(positive, negative, options.p, options.eps, where), where);
  return reduced(clamp_min(add(sub(near, far, where), options.margin, where), 0, where), options.reduction, where);
}

}  // namespace brigade
