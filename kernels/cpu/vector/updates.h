// The steps of the optimizers over dense arrays of float32, compiled for each instruction set.
#pragma once

#include <brigade/kernels/common/optimizer_math.h>

#include <cstdint>
#include <variant>

namespace brigade::kernels::cpu {

using FloatUpdate =
    std::variant<SgdUpdate<float, false>, SgdUpdate<float, true>, AdamUpdate<float, false>, AdamUpdate<float, true>,
                 RmspropUpdate<float, false, false>, RmspropUpdate<float, false, true>,
                 RmspropUpdate<float, true, false>, RmspropUpdate<float, true, true>, AdagradUpdate<float>,
                 AdadeltaUpdate<float>, RAdamUpdate<float, false>, RAdamUpdate<float, true>, NAdamUpdate<float>,
                 LionUpdate<float>>;

// Applies an update of optimizer_math.h to elements [begin, end) of its arrays, which must not overlap.
void update_floats(const FloatUpdate& update, float* const* arrays, int64_t begin, int64_t end);

}  // namespace brigade::kernels::cpu
