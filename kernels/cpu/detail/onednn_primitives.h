// Primitive descriptors of oneDNN's convolutions and matrix products for oneDNN 2 and 3: the only file that depends on
// the version. Version 3 has no operation descriptor (`convolution_forward::desc`), which version 2 needs to create the
// primitive descriptor; the queries of the primitive descriptor, and the memory and execution API that Brigade uses,
// are the same in both. Both are supported: current distributions ship version 3, Debian 12 and Ubuntu 22.04 version 2,
// and without it their convolutions would use im2col.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace brigade::kernels::cpu {

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
