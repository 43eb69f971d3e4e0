// Products and sums by Einstein's convention.
#pragma once

#include <brigade/core/tensor.h>

#include <string>
#include <vector>

namespace brigade {

// Like torch.einsum: "bij,bjk->bik". Each letter (a-z, A-Z) names a dimension; dimensions with the
// same letter have the same size, or 1, which is stretched. A letter that repeats within an operand
// takes the diagonal. Letters that the output does not name are summed over. Without "->" the
// output has the letters that appear once, capitals first, in alphabetical order. "..." stands for
// the dimensions that are not named: they are broadcast, and come first in an output that is not
// given. Spaces are ignored. Several operands are multiplied from left to right, by matrix products
// (of one dtype) where something is summed over, element by element (in the common dtype) otherwise.
// Throws ValueError for a malformed equation and ShapeError for operands that do not fit it; both name the subscript.
Tensor einsum(const std::string& equation, const std::vector<Tensor>& operands,
              SourceLocation where = SourceLocation::current());

}  // namespace brigade
