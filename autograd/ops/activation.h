// Activations: element by element, floating dtypes; the result has the shape of x. tanh and sigmoid
// take integers and bools as float32.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

Tensor relu(const Tensor& x, SourceLocation where = SourceLocation::current());
// x where x > 0, negative_slope * x elsewhere.
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01, SourceLocation where = SourceLocation::current());
// x * Phi(x): exact by erf, or the tanh approximation (Hendrycks and Gimpel, arXiv 1606.08415).
enum class GeluApproximation : uint8_t { None, Tanh };
Tensor gelu(const Tensor& x, GeluApproximation approximate = GeluApproximation::None,
            SourceLocation where = SourceLocation::current());
Tensor tanh(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor sigmoid(const Tensor& x, SourceLocation where = SourceLocation::current());
// x * sigmoid(x) (Elfwing, Uchibe and Doya, arXiv 1702.03118).
Tensor silu(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace brigade
