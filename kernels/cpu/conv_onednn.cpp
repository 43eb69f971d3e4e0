#include <brigade/kernels/cpu/detail/conv_onednn.h>

#ifndef BRIGADE_HAVE_ONEDNN

namespace brigade::kernels::cpu {
bool onednn_conv_forward(const ConvShape&, const Tensor&, const Tensor&, const Tensor&) { return false; }
bool onednn_conv_backward_input(const ConvShape&, const Tensor&, const Tensor&, const Tensor&) { return false; }
bool onednn_conv_backward_weight(const ConvShape&, const Tensor&, const Tensor&, const Tensor&, bool) { return false; }
}  // namespace brigade::kernels::cpu

#else

#include <brigade/core/factory.h>
#include <brigade/kernels/elementwise.h>

#include <oneapi/dnnl/dnnl.hpp>

#include <map>
#include <memory>
#include <utility>

namespace brigade::kernels::cpu {

namespace {

using Memory = dnnl::memory;

enum Pass : int { kForward, kBackwardInput, kBackwardWeight };

dnnl::engine& engine() {
  static dnnl::engine cpu_engine(dnnl::engine::kind::cpu, 0);
  return cpu_engine;
}

// One tensor of a primitive: the plain layout that we hold, the layout that the primitive chose, and memory in that
// layout.
struct Port {
  Memory::desc plain;
  Memory::desc chosen;
  Memory buffer;       // empty when the layouts are the same
  dnnl::reorder move;  // plain -> chosen for inputs, chosen -> plain for the result

  void prepare(const Memory::desc& wanted, bool input) {
    chosen = wanted;
    if (chosen == plain) return;
    buffer = Memory(chosen, engine());
    Memory ours(plain, engine(), nullptr);
    move = input ? dnnl::reorder(ours, buffer) : dnnl::reorder(buffer, ours);
  }
  // The memory that the primitive is to use for `data`.
  Memory bind(dnnl::stream& stream, void* data, bool input) {
    Memory ours(plain, engine(), data);
    if (chosen == plain) return ours;
    if (input) move.execute(stream, ours, buffer);
    return buffer;
  }
  void unbind(dnnl::stream& stream, void* data) {
    if (chosen == plain) return;
    Memory ours(plain, engine(), data);
    move.execute(stream, buffer, ours);
  }
};

// A primitive for one pass over one shape with `a` and `b` as inputs.
struct Cached {
  dnnl::primitive primitive;
  Port a, b, result;
  int arg_a = 0, arg_b = 0, arg_result = 0;
};

std::unique_ptr<Cached> make(const ConvShape& s, Pass pass) {
  using dnnl::algorithm;
  const Conv2dParams& p = s.params;
  const Memory::dims x{s.batch, s.channels, s.height, s.width};
  const Memory::dims y{s.batch, s.out_channels, s.out_h, s.out_w};
  const bool grouped = p.groups > 1;
  const Memory::dims w =
      grouped ? Memory::dims{p.groups, s.out_channels / p.groups, s.channels / p.groups, s.kernel_h, s.kernel_w}
              : Memory::dims{s.out_channels, s.channels, s.kernel_h, s.kernel_w};
  using Tag = Memory::format_tag;
  const auto type = Memory::data_type::f32;
  const Memory::desc any_x(x, type, Tag::any), any_w(w, type, Tag::any), any_y(y, type, Tag::any);
  const Memory::desc plain_x(x, type, Tag::nchw), plain_y(y, type, Tag::nchw),
      plain_w(w, type, grouped ? Tag::goihw : Tag::oihw);
  const Memory::dims stride{p.stride[0], p.stride[1]}, dilation{p.dilation[0] - 1, p.dilation[1] - 1},
      pad{p.padding[0], p.padding[1]};
  auto cached = std::make_unique<Cached>();
  const dnnl::convolution_forward::desc forward_desc(dnnl::prop_kind::forward_training, algorithm::convolution_direct,
                                                     any_x, any_w, any_y, stride, dilation, pad, pad);
  const dnnl::convolution_forward::primitive_desc forward(forward_desc, engine());
  if (pass == kForward) {
    cached->a.plain = plain_x;
    cached->b.plain = plain_w;
    cached->result.plain = plain_y;
    cached->a.prepare(forward.src_desc(), true);
    cached->b.prepare(forward.weights_desc(), true);
    cached->result.prepare(forward.dst_desc(), false);
    cached->arg_a = DNNL_ARG_SRC;
    cached->arg_b = DNNL_ARG_WEIGHTS;
    cached->arg_result = DNNL_ARG_DST;
    cached->primitive = dnnl::convolution_forward(forward);
  } else if (pass == kBackwardInput) {
    const dnnl::convolution_backward_data::primitive_desc desc(
        dnnl::convolution_backward_data::desc(algorithm::convolution_direct, any_x, any_w, any_y, stride, dilation, pad,
                                              pad),
        engine(), forward);
    cached->a.plain = plain_y;
    cached->b.plain = plain_w;
    cached->result.plain = plain_x;
    cached->a.prepare(desc.diff_dst_desc(), true);
    cached->b.prepare(desc.weights_desc(), true);
    cached->result.prepare(desc.diff_src_desc(), false);
    cached->arg_a = DNNL_ARG_DIFF_DST;
    cached->arg_b = DNNL_ARG_WEIGHTS;
    cached->arg_result = DNNL_ARG_DIFF_SRC;
    cached->primitive = dnnl::convolution_backward_data(desc);
  } else {
    const dnnl::convolution_backward_weights::primitive_desc desc(
        dnnl::convolution_backward_weights::desc(algorithm::convolution_direct, any_x, any_w, any_y, stride, dilation,
                                                 pad, pad),
        engine(), forward);
    cached->a.plain = plain_y;
    cached->b.plain = plain_x;
    cached->result.plain = plain_w;
    cached->a.prepare(desc.diff_dst_desc(), true);
    cached->b.prepare(desc.src_desc(), true);
    cached->result.prepare(desc.diff_weights_desc(), false);
    cached->arg_a = DNNL_ARG_DIFF_DST;
    cached->arg_b = DNNL_ARG_SRC;
    cached->arg_result = DNNL_ARG_DIFF_WEIGHTS;
    cached->primitive = dnnl::convolution_backward_weights(desc);
  }
  return cached;
}

// Per thread, since ranks may be threads and the buffers are not shared. Bounded: a job that never repeats a shape must
// not grow.
Cached* find(const ConvShape& shape, Pass pass) {
  constexpr size_t kMost = 256;
  thread_local std::map<std::pair<Pass, ConvShape>, std::unique_ptr<Cached>> cache;
  const std::pair<Pass, ConvShape> key{pass, shape};
  const auto found = cache.find(key);
  if (found != cache.end()) return found->second.get();
  if (cache.size() >= kMost) cache.clear();
  std::unique_ptr<Cached> made;
  try {
    made = make(shape, pass);
  } catch (const dnnl::error&) {
    // No primitive for this shape: remember that, and leave it to im2col.
  }
  return cache.emplace(key, std::move(made)).first->second.get();
}

bool run(const ConvShape& shape, Pass pass, const Tensor& a, const Tensor& b, const Tensor& result) {
  Cached* cached = find(shape, pass);
  if (!cached) return false;
  thread_local dnnl::stream stream(engine());
  Memory in_a = cached->a.bind(stream, a.raw_data(), true);
  Memory in_b = cached->b.bind(stream, b.raw_data(), true);
  Memory out = cached->result.bind(stream, result.raw_data(), false);
  cached->primitive.execute(stream, {{cached->arg_a, in_a}, {cached->arg_b, in_b}, {cached->arg_result, out}});
  cached->result.unbind(stream, result.raw_data());
  stream.wait();
  return true;
}

}  // namespace

bool onednn_conv_forward(const ConvShape& shape, const Tensor& x, const Tensor& weight, const Tensor& y) {
  return run(shape, kForward, x, weight, y);
}

bool onednn_conv_backward_input(const ConvShape& shape, const Tensor& grad, const Tensor& weight, const Tensor& dx) {
  return run(shape, kBackwardInput, grad, weight, dx);
}

bool onednn_conv_backward_weight(const ConvShape& shape, const Tensor& grad, const Tensor& x, const Tensor& dweight,
                                 bool accumulate) {
  if (!accumulate) return run(shape, kBackwardWeight, grad, x, dweight);
  const Tensor fresh = empty_like(dweight);
  if (!run(shape, kBackwardWeight, grad, x, fresh)) return false;
  add_inplace(dweight, fresh, 1.0);
  return true;
}

}  // namespace brigade::kernels::cpu

#endif
