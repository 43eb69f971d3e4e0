// Activations, softmax and dropout.
#pragma once

#include <brigade/core/random.h>
#include <brigade/core/tensor.h>

namespace brigade {

// --- Activations: element by element, floating dtypes; the result has the shape of x. tanh and sigmoid take integers
// and bools as float32.

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

// --- More activations, most of them with parameters: element by element, floating dtypes; the result has the shape of
// x unless stated otherwise. Derivatives at kinks are PyTorch's. They throw DTypeError.

// x where x > 0, alpha (exp(x) - 1) elsewhere (Clevert, Unterthiner and Hochreiter, arXiv
// 1511.07289).
Tensor elu(const Tensor& x, double alpha = 1, SourceLocation where = SourceLocation::current());
// elu, scaled so that activations normalize themselves (Klambauer et al., arXiv 1706.02515).
Tensor selu(const Tensor& x, SourceLocation where = SourceLocation::current());
// max(0, x) + min(0, alpha (exp(x / alpha) - 1)) (Barron, arXiv 1704.07483). Throws ValueError for
// alpha = 0.
Tensor celu(const Tensor& x, double alpha = 1, SourceLocation where = SourceLocation::current());
// log(1 + exp(beta x)) / beta, x itself where beta x > threshold.
Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20,
                SourceLocation where = SourceLocation::current());
// x clamped to [min_val, max_val]. Throws ValueError unless min_val <= max_val.
Tensor hardtanh(const Tensor& x, double min_val = -1, double max_val = 1,
                SourceLocation where = SourceLocation::current());
// x clamped to [0, 6].
Tensor relu6(const Tensor& x, SourceLocation where = SourceLocation::current());
// (x + 3) / 6 clamped to [0, 1].
Tensor hardsigmoid(const Tensor& x, SourceLocation where = SourceLocation::current());
// x hardsigmoid(x) (Howard et al., arXiv 1905.02244).
Tensor hardswish(const Tensor& x, SourceLocation where = SourceLocation::current());
// x tanh(softplus(x)) (Misra, arXiv 1908.08681).
Tensor mish(const Tensor& x, SourceLocation where = SourceLocation::current());
// x / (1 + |x|)
Tensor softsign(const Tensor& x, SourceLocation where = SourceLocation::current());
// log(sigmoid(x)), without overflow.
Tensor logsigmoid(const Tensor& x, SourceLocation where = SourceLocation::current());
// x moved by `lambda` towards 0; 0 where |x| <= lambda. Throws ValueError for a negative lambda.
Tensor softshrink(const Tensor& x, double lambda = 0.5, SourceLocation where = SourceLocation::current());
// x, but 0 where |x| <= lambda.
Tensor hardshrink(const Tensor& x, double lambda = 0.5, SourceLocation where = SourceLocation::current());
// x where x > 0, weight x elsewhere (He et al., arXiv 1502.01852). `weight` has one element, or one
// per channel: per entry of x's dimension 1. Throws ShapeError.
Tensor prelu(const Tensor& x, const Tensor& weight, SourceLocation where = SourceLocation::current());
// a sigmoid(b), a and b being the halves of x along `dim` (Dauphin et al., arXiv 1612.08083).
// Throws ShapeError for an odd size, IndexError.
Tensor glu(const Tensor& x, int64_t dim = -1, SourceLocation where = SourceLocation::current());

// --- softmax, softmin and log_softmax along one dimension; floating dtypes.

Tensor softmax(const Tensor& x, int64_t dim, SourceLocation where = SourceLocation::current());
// softmax(-x)
Tensor softmin(const Tensor& x, int64_t dim, SourceLocation where = SourceLocation::current());
Tensor log_softmax(const Tensor& x, int64_t dim, SourceLocation where = SourceLocation::current());

// --- Dropout (Srivastava et al., JMLR 15, 2014), inverted: kept elements are scaled by 1 / (1 - p).

// Returns x itself unless `training`. Takes numbers from the calling thread's generator. Throws ValueError unless
// 0 <= p <= 1.
Tensor dropout(const Tensor& x, double p = 0.5, bool training = true, SourceLocation where = SourceLocation::current());

}  // namespace brigade
