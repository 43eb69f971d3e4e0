// Which instruction sets the files of this folder are compiled for. Include it before
// <hwy/foreach_target.h>.
//
// Each such file is compiled several times, once for each instruction set (Google Highway's
// foreach_target), and the best that the processor has is chosen when the program starts: one
// source for SSE4, AVX2, AVX-512 and NEON, and for what every processor has. Loops over float32
// stand there, whose speed matters; everything else is compiled once.
#pragma once

#include <brigade/kernels/instruction_set.h>

// The encryption instructions are not used, so a processor need not have them.
#define HWY_DISABLE_PCLMUL_AES
// Everything but these: a target more is a compilation more. Bits 14 and 29 are SSE2 and NEON
// without encryption, which old versions of Highway do not name.
#ifdef BRIGADE_FEW_INSTRUCTION_SETS
#define HWY_DISABLED_TARGETS (~(HWY_AVX2 | (1LL << 14) | HWY_NEON | (1LL << 29) | HWY_EMU128 | HWY_SCALAR))
#else
#define HWY_DISABLED_TARGETS \
  (~(HWY_SSE4 | HWY_AVX2 | HWY_AVX3 | (1LL << 14) | HWY_NEON | (1LL << 29) | HWY_EMU128 | HWY_SCALAR))
#endif

namespace brigade::kernels::cpu {
// Before anything is dispatched, BRIGADE_CPU has its say; that file is linked where this one is
// used.
[[maybe_unused]] inline const bool instruction_set_is_limited = limit_instruction_set();
}  // namespace brigade::kernels::cpu
