// oneDNN on the CPU. Only for files that are compiled with oneDNN.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace brigade::kernels::cpu {

// Keeps oneDNN from instructions that BRIGADE_CPU forbids. Before anything else is asked of it:
// then it is too late.
void limit_onednn();
// Limited as said above.
const dnnl::engine& onednn_engine();
// The calling thread's.
dnnl::stream& onednn_stream();
// The processor multiplies bfloat16 numbers and adds them up in float32 by an instruction of its
// own.
bool onednn_has_bfloat16();

}  // namespace brigade::kernels::cpu
