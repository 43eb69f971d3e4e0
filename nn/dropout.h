// Dropout layer (Srivastava et al., JMLR 15, 2014).
#pragma once

#include <brigade/nn/module.h>

namespace brigade::nn {

// In training sets each element to zero with probability p and scales the others by 1 / (1 - p),
// with numbers from the calling thread's generator; in evaluation it returns x itself. Throws
// ValueError "dropout probability has to be between 0 and 1".
struct DropoutImpl : Module {
  explicit DropoutImpl(double p = 0.5);
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  double p;

 protected:
  std::string extra() const override;
};
BRIGADE_MODULE(Dropout);

}  // namespace brigade::nn
