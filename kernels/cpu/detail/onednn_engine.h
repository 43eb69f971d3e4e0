// oneDNN on the CPU. Only for files that are compiled with oneDNN.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace brigade::kernels::cpu {

// Keeps oneDNN from instructions that BRIGADE_CPU forbids. Before anything else is asked of it:
// then it is too late.
void limit_onednn();
// Limited as said above. This and the stream are asked for before each primitive is made and run:
// they see to it that the calling thread's OpenMP settings ask for no more threads than there will
// be.
const dnnl::engine& onednn_engine();
// The calling thread's.
dnnl::stream& onednn_stream();
// The processor multiplies bfloat16 numbers and adds them up in float32 by an instruction of its
// own.
bool onednn_has_bfloat16();

}  // namespace brigade::kernels::cpu
