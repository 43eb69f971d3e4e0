// The steps of the optimizers, and the unscaling of gradients, over dense arrays, compiled for each instruction set.
#pragma once

#include <brigade/core/dtype.h>
#include <brigade/kernels/common/optimizer_math.h>

#include <cstdint>
#include <variant>

namespace brigade::kernels::cpu {

// --- The steps of the optimizers over dense arrays of float32, compiled for each instruction set.

using FloatUpdate =
    std::variant<SgdUpdate<float, false>, SgdUpdate<float, true>, AdamUpdate<float, false>, AdamUpdate<float, true>,
                 RmspropUpdate<float, false, false>, RmspropUpdate<float, false, true>,
                 RmspropUpdate<float, true, false>, RmspropUpdate<float, true, true>, AdagradUpdate<float>,
                 AdadeltaUpdate<float>, RAdamUpdate<float, false>, RAdamUpdate<float, true>, NAdamUpdate<float>,
                 LionUpdate<float>>;

// Applies an update of optimizer_math.h to elements [begin, end) of its arrays, which must not overlap.
void update_floats(const FloatUpdate& update, float* const* arrays, int64_t begin, int64_t end);

// --- Multiplies gradients by the inverse loss scale and checks that all are finite, in one pass, compiled for each
// instruction set.

// Whether every one of n elements of a floating dtype is finite.
bool all_finite(DType dtype, const void* x, int64_t n);

// x *= factor. Returns whether every element was finite on entry.
bool unscale_floats(float* x, int64_t n, float factor);

}  // namespace brigade::kernels::cpu
