// Convolution with oneDNN: each thread caches primitives by shape, with reorders between the plain layout and the
// primitive's.
#include <brigade/kernels/cpu/detail/gemm.h>

#ifndef BRIGADE_HAVE_ONEDNN

namespace brigade::kernels::cpu {
bool onednn_conv_takes(DType) { return false; }
int64_t onednn_conv_passes(DType) { return 0; }
bool onednn_conv_forward(const ConvShape&, const Tensor&, const Tensor&, const Tensor&, const Tensor&) { return false; }
bool onednn_conv_backward_input(const ConvShape&, const Tensor&, const Tensor&, const Tensor&) { return false; }
bool onednn_conv_backward_weight(const ConvShape&, const Tensor&, const Tensor&, const Tensor&, bool) { return false; }
}  // namespace brigade::kernels::cpu

#else

#include <brigade/core/factory.h>
#include <brigade/kernels/cpu/detail/onednn.h>
#include <brigade/kernels/elementwise.h>

#include <memory>
#include <string_view>
#include <unordered_map>

namespace brigade::kernels::cpu {
namespace {

using Memory = dnnl::memory;

enum Pass : int { kForward, kBackwardInput, kBackwardWeight };

// One tensor of a primitive: our plain layout, and the layout that the primitive chose. Memory for the chosen layout
// comes from the caching allocator for each call: cached by shape, it would be a second copy of all activations.
struct Port {
  Memory plain, chosen;
  dnnl::reorder move;  // plain -> chosen for inputs, chosen -> plain for the result
  bool direct = true;  // the layouts are the same

  Port() = default;
  Port(const Memory::desc& ours, const Memory::desc& wanted, bool input)
      : plain(ours, onednn_engine(), nullptr), direct(wanted == ours) {
    if (direct) return;
    chosen = Memory(wanted, onednn_engine(), nullptr);
    move = input ? dnnl::reorder(plain, chosen) : dnnl::reorder(chosen, plain);
  }
  // The memory that the primitive uses.
  const Memory& memory() const { return direct ? plain : chosen; }

  // Sets the tensor's data pointer. The returned tensor holds the chosen layout and must live until the primitive has
  // run.
  Tensor bind(void* data) {
    plain.set_data_handle(data);
    if (direct) return {};
    Tensor other = empty({static_cast<int64_t>(chosen.get_desc().get_size())}, kUInt8);
    chosen.set_data_handle(other.raw_data());
    return other;
  }
  void take(dnnl::stream& stream) {
    if (!direct) move.execute(stream, plain, chosen);
  }
  void give(dnnl::stream& stream) {
    if (!direct) move.execute(stream, chosen, plain);
  }
};

// A primitive for one pass over one shape with `a` and `b` as inputs.
struct Cached {
  dnnl::primitive primitive;
  Port a, b, result;
  Memory bias;
  std::unordered_map<int, Memory> arguments;
};

// The cache key of a primitive.
struct Key {
  Pass pass;
  DType dtype;
  DType result;  // dtype of the input gradient
  bool bias;
  ConvShape shape;
  auto operator<=>(const Key&) const = default;
};

// For shapes that its bfloat16 convolutions do not support, oneDNN falls back to matrix products of columns or to
// reference loops, which are slower than its float32 convolution with casts.
bool is_fast(const Key& key, std::string_view implementation) {
  if (key.dtype != kBFloat16) return true;
  for (const std::string_view slow : {"gemm", "x64:gemm", "ref"}) {
    if (implementation.starts_with(slow)) return false;
  }
  return true;
}

std::unique_ptr<Cached> make(const Key& key) {
  const ConvShape& s = key.shape;
  const Conv2dParams& p = s.params;
  const Memory::dims x{s.batch, s.channels, s.height, s.width};
  const Memory::dims y{s.batch, s.out_channels, s.out_h, s.out_w};
  const bool grouped = p.groups > 1;
  const Memory::dims w =
      grouped ? Memory::dims{p.groups, s.out_channels / p.groups, s.channels / p.groups, s.kernel_h, s.kernel_w}
              : Memory::dims{s.out_channels, s.channels, s.kernel_h, s.kernel_w};
  using Tag = Memory::format_tag;
  const auto type_of = [](DType dtype) {
    return dtype == kBFloat16 ? Memory::data_type::bf16 : Memory::data_type::f32;
  };
  const auto type = type_of(key.dtype);
  const auto plain_weight = grouped ? Tag::goihw : Tag::oihw;
  const Memory::desc plain_x(x, type, Tag::nchw), plain_y(y, type, Tag::nchw), plain_w(w, type, plain_weight);
  OnednnConvolution convolution{
      .x = Memory::desc(x, type, Tag::any),
      .weight = Memory::desc(w, type, Tag::any),
      .bias = key.bias ? Memory::desc({s.out_channels}, Memory::data_type::f32, Tag::a) : Memory::desc(),
      .y = Memory::desc(y, type, Tag::any),
      .stride = {p.stride[0], p.stride[1]},
      .dilation = {p.dilation[0] - 1, p.dilation[1] - 1},
      .padding = {p.padding[0], p.padding[1]},
  };
  auto cached = std::make_unique<Cached>();
  const auto set = [&](const auto& primitive, const Port& a, int arg_a, const Port& b, int arg_b, const Port& result,
                       int arg_result) {
    cached->primitive = primitive;
    cached->a = a;
    cached->b = b;
    cached->result = result;
    cached->arguments = {{arg_a, a.memory()}, {arg_b, b.memory()}, {arg_result, result.memory()}};
  };
  const OnednnForward forward = describe_forward(onednn_engine(), convolution);
  if (key.pass == kForward) {
    if (!is_fast(key, forward.impl_info_str())) return nullptr;
    set(dnnl::convolution_forward(forward), Port(plain_x, forward.src_desc(), true), DNNL_ARG_SRC,
        Port(plain_w, forward.weights_desc(), true), DNNL_ARG_WEIGHTS, Port(plain_y, forward.dst_desc(), false),
        DNNL_ARG_DST);
    if (key.bias) {
      cached->bias = Memory(convolution.bias, onednn_engine(), nullptr);
      cached->arguments.emplace(DNNL_ARG_BIAS, cached->bias);
    }
  } else if (key.pass == kBackwardInput) {
    convolution.x = Memory::desc(x, type_of(key.result), Tag::any);
    const Memory::desc plain_result(x, type_of(key.result), Tag::nchw);
    const OnednnBackwardInput desc = describe_backward_input(onednn_engine(), convolution, forward);
    if (!is_fast(key, desc.impl_info_str())) return nullptr;
    set(dnnl::convolution_backward_data(desc), Port(plain_y, desc.diff_dst_desc(), true), DNNL_ARG_DIFF_DST,
        Port(plain_w, desc.weights_desc(), true), DNNL_ARG_WEIGHTS, Port(plain_result, desc.diff_src_desc(), false),
        DNNL_ARG_DIFF_SRC);
  } else {
    // The weight gradient is always float32: it is a sum over the batch, to be rounded once.
    convolution.weight = Memory::desc(w, Memory::data_type::f32, Tag::any);
    const Memory::desc plain_gradient(w, Memory::data_type::f32, plain_weight);
    const OnednnBackwardWeight desc = describe_backward_weight(onednn_engine(), convolution, forward);
    if (!is_fast(key, desc.impl_info_str())) return nullptr;
    set(dnnl::convolution_backward_weights(desc), Port(plain_y, desc.diff_dst_desc(), true), DNNL_ARG_DIFF_DST,
        Port(plain_x, desc.src_desc(), true), DNNL_ARG_SRC, Port(plain_gradient, desc.diff_weights_desc(), false),
        DNNL_ARG_DIFF_WEIGHTS);
  }
  return cached;
}

struct Counts {
  int64_t float32 = 0, bfloat16 = 0;
  int64_t& of(DType dtype) { return dtype == kBFloat16 ? bfloat16 : float32; }
};
thread_local Counts passes;

// `a` and `b` have one dtype.
bool run(const ConvShape& shape, Pass pass, const Tensor& a, const Tensor& b, const Tensor& bias,
         const Tensor& result) {
  if (!onednn_conv_takes(a.dtype())) return false;
  thread_local OnednnCache<Key, Cached> cache;
  Cached* const cached = cache.find({pass, a.dtype(), result.dtype(), bias.defined(), shape}, &make);
  if (!cached) return false;
  dnnl::stream& stream = onednn_stream();
  const Tensor other_a = cached->a.bind(a.raw_data());
  const Tensor other_b = cached->b.bind(b.raw_data());
  const Tensor other_result = cached->result.bind(result.raw_data());
  if (bias.defined()) cached->bias.set_data_handle(bias.raw_data());
  cached->a.take(stream);
  cached->b.take(stream);
  cached->primitive.execute(stream, cached->arguments);
  cached->result.give(stream);
  stream.wait();
  ++passes.of(a.dtype());
  return true;
}

}  // namespace

bool onednn_conv_takes(DType dtype) { return dtype == kFloat32 || (dtype == kBFloat16 && onednn_has_bfloat16()); }

int64_t onednn_conv_passes(DType dtype) { return dtype == kFloat32 || dtype == kBFloat16 ? passes.of(dtype) : 0; }

bool onednn_conv_forward(const ConvShape& shape, const Tensor& x, const Tensor& weight, const Tensor& bias,
                         const Tensor& y) {
  return run(shape, kForward, x, weight, bias, y);
}

bool onednn_conv_backward_input(const ConvShape& shape, const Tensor& grad, const Tensor& weight, const Tensor& dx) {
  return run(shape, kBackwardInput, grad, weight, {}, dx);
}

bool onednn_conv_backward_weight(const ConvShape& shape, const Tensor& grad, const Tensor& x, const Tensor& dweight,
                                 bool accumulate) {
  if (!accumulate) return run(shape, kBackwardWeight, grad, x, {}, dweight);
  const Tensor fresh = empty_like(dweight);
  if (!run(shape, kBackwardWeight, grad, x, {}, fresh)) return false;
  add_inplace(dweight, fresh, 1.0);
  return true;
}

}  // namespace brigade::kernels::cpu

#endif
