// oneDNN on the CPU: its engine, a cache of primitives, and their descriptors for versions 2 and 3. Only for files that
// are compiled with oneDNN.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <cstddef>
#include <map>
#include <memory>

namespace brigade::kernels::cpu {

// --- oneDNN on the CPU. Only for files that are compiled with oneDNN.

// Keeps oneDNN from using instructions that BRIGADE_CPU forbids. Must be called before any other use of oneDNN.
void limit_onednn();
// The engine, limited as above. Call this and onednn_stream() before each primitive is created and run: they adjust the
// calling thread's OpenMP settings so that no more threads are requested than OpenMP provides.
const dnnl::engine& onednn_engine();
// The stream of the calling thread.
dnnl::stream& onednn_stream();
// Whether the processor has an instruction for bfloat16 dot products with float32 accumulation.
bool onednn_has_bfloat16();

// --- A per-thread cache of oneDNN primitives by key. Ranks may be threads, and primitives are not shared between
// threads. Only for files that are compiled with oneDNN.

template <class Key, class Made>
class OnednnCache {
 public:
  // make(key) returns a std::unique_ptr<Made>; if there is no primitive it returns nullptr or throws dnnl::error.
  // find() then caches and returns nullptr.
  template <class Make>
  Made* find(const Key& key, Make make) {
    const auto found = made_.find(key);
    if (found != made_.end()) return found->second.get();
    if (made_.size() >= kMost) made_.clear();
    std::unique_ptr<Made> fresh;
    try {
      fresh = make(key);
    } catch (const dnnl::error&) {
    }
    return made_.emplace(key, std::move(fresh)).first->second.get();
  }

 private:
  static constexpr size_t kMost = 256;  // bounds the memory of jobs that never repeat a shape
  std::map<Key, std::unique_ptr<Made>> made_;
};

// --- Primitive descriptors of oneDNN's convolutions and matrix products for oneDNN 2 and 3: the only file that depends
// on the version. Version 3 has no operation descriptor (`convolution_forward::desc`), which version 2 needs to create
// the primitive descriptor; the queries of the primitive descriptor, and the memory and execution API that Brigade
// uses, are the same in both. Both are supported: current distributions ship version 3, Debian 12 and Ubuntu 22.04
// version 2, and without it their convolutions would use im2col.

// One convolution; oneDNN chooses the layouts that are format_tag::any. `bias` is empty if there is none.
// Dilation counts from 0, as oneDNN does.
struct OnednnConvolution {
  dnnl::memory::desc x, weight, bias, y;
  dnnl::memory::dims stride, dilation, padding;
};

using OnednnForward = dnnl::convolution_forward::primitive_desc;
using OnednnBackwardInput = dnnl::convolution_backward_data::primitive_desc;
using OnednnBackwardWeight = dnnl::convolution_backward_weights::primitive_desc;

inline constexpr auto kOnednnAlgorithm = dnnl::algorithm::convolution_direct;

// Each throws dnnl::error if oneDNN has no primitive for the shape.

#if DNNL_VERSION_MAJOR >= 3

inline dnnl::matmul::primitive_desc describe_matmul(const dnnl::engine& engine, const dnnl::memory::desc& a,
                                                    const dnnl::memory::desc& b, const dnnl::memory::desc& out,
                                                    const dnnl::primitive_attr& attributes) {
  return {engine, a, b, out, attributes};
}

inline OnednnForward describe_forward(const dnnl::engine& engine, const OnednnConvolution& c) {
  return OnednnForward(engine, dnnl::prop_kind::forward_training, kOnednnAlgorithm, c.x, c.weight, c.bias, c.y,
                       c.stride, c.dilation, c.padding, c.padding);
}

inline OnednnBackwardInput describe_backward_input(const dnnl::engine& engine, const OnednnConvolution& c,
                                                   const OnednnForward& forward) {
  return {engine, kOnednnAlgorithm, c.x, c.weight, c.y, c.stride, c.dilation, c.padding, c.padding, forward};
}

inline OnednnBackwardWeight describe_backward_weight(const dnnl::engine& engine, const OnednnConvolution& c,
                                                     const OnednnForward& forward) {
  return {engine, kOnednnAlgorithm, c.x, c.weight, c.y, c.stride, c.dilation, c.padding, c.padding, forward};
}

#else

inline dnnl::matmul::primitive_desc describe_matmul(const dnnl::engine& engine, const dnnl::memory::desc& a,
                                                    const dnnl::memory::desc& b, const dnnl::memory::desc& out,
                                                    const dnnl::primitive_attr& attributes) {
  return {dnnl::matmul::desc(a, b, out), attributes, engine};
}

inline OnednnForward describe_forward(const dnnl::engine& engine, const OnednnConvolution& c) {
  const dnnl::convolution_forward::desc operation(dnnl::prop_kind::forward_training, kOnednnAlgorithm, c.x, c.weight,
                                                  c.bias, c.y, c.stride, c.dilation, c.padding, c.padding);
  return {operation, engine};
}

inline OnednnBackwardInput describe_backward_input(const dnnl::engine& engine, const OnednnConvolution& c,
                                                   const OnednnForward& forward) {
  const dnnl::convolution_backward_data::desc operation(kOnednnAlgorithm, c.x, c.weight, c.y, c.stride, c.dilation,
                                                        c.padding, c.padding);
  return {operation, engine, forward};
}

inline OnednnBackwardWeight describe_backward_weight(const dnnl::engine& engine, const OnednnConvolution& c,
                                                     const OnednnForward& forward) {
  const dnnl::convolution_backward_weights::desc operation(kOnednnAlgorithm, c.x, c.weight, c.y, c.stride, c.dilation,
                                                           c.padding, c.padding);
  return {operation, engine, forward};
}

#endif

}  // namespace brigade::kernels::cpu
