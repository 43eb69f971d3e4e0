// oneDNN's CPU engine. Only for files that are compiled with oneDNN.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace brigade::kernels::cpu {

// Uses no instruction that BRIGADE_CPU forbids.
const dnnl::engine& onednn_engine();
// The calling thread's.
dnnl::stream& onednn_stream();
// The processor multiplies bfloat16 numbers and adds them up in float32 by an instruction of its own.
bool onednn_has_bfloat16();

}  // namespace brigade::kernels::cpu
