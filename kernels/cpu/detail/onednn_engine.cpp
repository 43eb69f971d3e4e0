// The oneDNN engine of the process and a stream per thread, limited to the chosen instruction set.
#ifdef BRIGADE_HAVE_ONEDNN

#include <brigade/kernels/cpu/detail/onednn.h>

#include <brigade/kernels/kernel.h>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace brigade::kernels::cpu {
namespace {

// Adjusts the OpenMP settings of the calling thread, which the program may change at any time. oneDNN splits its work
// over as many threads as it requests, and its barriers wait for all of them. Requesting more threads than OpenMP
// provides (OMP_THREAD_LIMIT, OMP_DYNAMIC) would hang.
void ask_for_threads_that_come() {
#ifdef _OPENMP
  if (omp_get_dynamic()) omp_set_dynamic(0);
  if (omp_get_max_threads() > omp_get_thread_limit()) omp_set_num_threads(omp_get_thread_limit());
#endif
}

}  // namespace

void limit_onednn() {
  [[maybe_unused]] static const bool once = [] {
    const std::string_view level = instruction_set();
    if (level == "x86-64-v3") dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
    if (level == "x86-64-v2" || level == "x86-64") dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
    return true;
  }();
}

const dnnl::engine& onednn_engine() {
  static const dnnl::engine engine = [] {
    limit_onednn();
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  ask_for_threads_that_come();
  return engine;
}

dnnl::stream& onednn_stream() {
  thread_local dnnl::stream stream(onednn_engine());
  ask_for_threads_that_come();
  return stream;
}

bool onednn_has_bfloat16() {
  static const bool has = [] {
    onednn_engine();
    // A higher ISA level includes the bits of the lower ones.
    constexpr auto kWanted = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
    return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & kWanted) == kWanted;
  }();
  return has;
}

}  // namespace brigade::kernels::cpu

#endif
