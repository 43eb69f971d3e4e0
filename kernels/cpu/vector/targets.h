// The instruction sets that the files of this folder are compiled for. Include it before <hwy/foreach_target.h>.
//
// Each such file is compiled several times, once for each instruction set (Google Highway's foreach_target), and the
// best one that the processor supports is chosen at program start: one source for SSE4, AVX2, AVX-512, NEON and the
// baseline. These files contain the performance-critical loops over float32; everything else is compiled once.
#pragma once

#include <brigade/kernels/kernel.h>

// The encryption instructions are not used, so the processor does not need them.
#define HWY_DISABLE_PCLMUL_AES
// Disables all targets except these, since each target is a further compilation. Bits 14 and 29 are SSE2 and NEON
// without encryption, which old versions of Highway do not name.
#ifdef BRIGADE_FEW_INSTRUCTION_SETS
#define HWY_DISABLED_TARGETS (~(HWY_AVX2 | (1LL << 14) | HWY_NEON | (1LL << 29) | HWY_EMU128 | HWY_SCALAR))
#else
#define HWY_DISABLED_TARGETS \
  (~(HWY_SSE4 | HWY_AVX2 | HWY_AVX3 | (1LL << 14) | HWY_NEON | (1LL << 29) | HWY_EMU128 | HWY_SCALAR))
#endif

namespace brigade::kernels::cpu {
// Applies BRIGADE_CPU before anything is dispatched. It also links the file of limit_instruction_set() wherever this
// header is used.
[[maybe_unused]] inline const bool instruction_set_is_limited = limit_instruction_set();
}  // namespace brigade::kernels::cpu
