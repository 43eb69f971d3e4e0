// The instruction set that the CPU's kernels were chosen for when the program started.
#pragma once

#include <string_view>

namespace brigade::kernels {

// "x86-64", "x86-64-v2" (SSE4.2), "x86-64-v3" (AVX2), "x86-64-v4" (AVX-512), "neon" or "portable":
// the best one that the processor has, or a lower one by the environment variable BRIGADE_CPU, for
// tests and comparisons.
std::string_view instruction_set();

namespace cpu {
// Obeys BRIGADE_CPU; ends the program with status 2 and a line on standard error when it names no
// instruction set of this processor. Called before main.
bool limit_instruction_set();
}  // namespace cpu

}  // namespace brigade::kernels
