// The instruction set that the CPU kernels were chosen for at program start.
#pragma once

#include <string_view>

namespace brigade::kernels {

// "x86-64", "x86-64-v2" (SSE4.2), "x86-64-v3" (AVX2), "x86-64-v4" (AVX-512), "neon" or "portable": the best one that
// the processor has, or a lower one set by the environment variable BRIGADE_CPU (for tests and comparisons).
std::string_view instruction_set();

namespace cpu {
// Applies BRIGADE_CPU. Exits with status 2 and a line on stderr when it names no instruction set of this processor.
// Called before main.
bool limit_instruction_set();
}  // namespace cpu

}  // namespace brigade::kernels
