// Autograd's per-thread state.
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>

namespace brigade::autograd::detail {

// The module call that is running (an index of the tape), 0 when none.
BRIGADE_INITIAL_EXEC inline constinit thread_local uint32_t current_call = 0;

// The line of the operation whose backward is being recorded; operations recorded there without their own line get this
// one.
BRIGADE_INITIAL_EXEC inline constinit thread_local SourceLocation running_where;

}  // namespace brigade::autograd::detail
