// oneDNN on the CPU. Only for files that are compiled with oneDNN.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace brigade::kernels::cpu {

// Keeps oneDNN from using instructions that BRIGADE_CPU forbids. Must be called before any other use of oneDNN.
void limit_onednn();
// The engine, limited as above. Call this and onednn_stream() before each primitive is created and run: they adjust the
// calling thread's OpenMP settings so that no more threads are requested than OpenMP provides.
const dnnl::engine& onednn_engine();
// The stream of the calling thread.
dnnl::stream& onednn_stream();
// Whether the processor has an instruction for bfloat16 dot products with float32 accumulation.
bool onednn_has_bfloat16();

}  // namespace brigade::kernels::cpu
