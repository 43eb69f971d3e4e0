#include <brigade/kernels/foreach.h>

#include <brigade/kernels/bucket.h>
#include <brigade/kernels/detail/foreach_checks.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/reduce.h>

#include <cmath>

namespace brigade::kernels {

namespace {

double number_in(const Tensor& scalar) { return detail::element_as_double(scalar, 0); }

void foreach_unscale_cpu(std::span<const Tensor> grads, const Tensor& inv_scale, const Tensor& found_inf) {
  check_unscale(grads, inv_scale, found_inf);
  for (const Tensor& grad : grads) {
    if (has_non_finite(contiguous(grad))) fill(found_inf, 1);
    scale_inplace(grad, number_in(inv_scale));
  }
}

double term_of(const Tensor& tensor, NormTerm term) {
  if (tensor.numel() == 0) return 0;
  const Tensor values = is_half(tensor.dtype()) ? cast(tensor, kFloat32) : tensor;
  const Tensor terms = unary(values, term == NormTerm::SumOfSquares ? UnaryOp::Square : UnaryOp::Abs);
  if (term != NormTerm::MaxAbs) return number_in(sum(terms, {}));
  Tensor largest = terms;
  while (largest.dim() > 0)
    largest = max(largest, 0, false).values;
  return number_in(largest);
}

void foreach_norm_cpu(std::span<const Tensor> tensors, NormTerm term, const Tensor& out) {
  check_norm(tensors, out);
  for (size_t i = 0; i < tensors.size(); ++i)
    static_cast<double*>(out.raw_data())[i] = term_of(tensors[i], term);
}

void foreach_scale_cpu(std::span<const Tensor> tensors, double factor, const Tensor& by) {
  check_scale(tensors, by);
  if (by.defined()) factor *= number_in(by);
  for (const Tensor& tensor : tensors)
    scale_inplace(tensor, factor);
}

}  // namespace

constinit Kernel<void(std::span<const Tensor>, const Tensor&, const Tensor&)> foreach_unscale("foreach_unscale",
                                                                                              &foreach_unscale_cpu);
constinit Kernel<void(std::span<const Tensor>, NormTerm, const Tensor&)> foreach_norm("foreach_norm",
                                                                                      &foreach_norm_cpu);
constinit Kernel<void(std::span<const Tensor>, double, const Tensor&)> foreach_scale("foreach_scale",
                                                                                     &foreach_scale_cpu);

}  // namespace brigade::kernels
