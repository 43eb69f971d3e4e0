// Programs inside an autocast region, for `brigade check`: nested regions, the cache of casts, checkpoints and
// custom functions. The row opens the region.
#include <brigade/amp/autocast.h>
#include <brigade/autograd/checkpoint.h>
#include <brigade/autograd/function.h>
#include <brigade/autograd/functional.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {
namespace {

struct Product : autograd::Function<Product>, autograd::BackwardUnderAutocast {
  static Tensor forward(autograd::AutogradContext& ctx, const Tensor& x, const Tensor& w) {
    ctx.save_for_backward({x, w});
    return mm(x, w);
  }
  static std::vector<Tensor> backward(autograd::AutogradContext& ctx, const std::vector<Tensor>& grads) {
    const std::vector<Tensor> saved = ctx.get_saved_variables();
    return {mm(grads[0], saved[1].t()), mm(saved[0].t(), grads[0])};
  }
};

struct ExactProduct : autograd::Function<ExactProduct>, autograd::CastInputsUnderAutocast<kFloat32> {
  static Tensor forward(autograd::AutogradContext& ctx, const Tensor& x, const Tensor& w) {
    return Product::forward(ctx, x, w);
  }
  static std::vector<Tensor> backward(autograd::AutogradContext& ctx, const std::vector<Tensor>& grads) {
    return Product::backward(ctx, grads);
  }
};

Outputs in_other_dtype(const Inputs& in, const Arguments&) {
  const Tensor y = mm(in[0], in[1] * 1.0);
  const amp::autocast other(kCPU, amp::autocast_dtype(kCPU) == kBFloat16 ? kFloat16 : kBFloat16);
  return mm(y, in[1] * 1.0);
}

Outputs off_inside(const Inputs& in, const Arguments&) {
  const Tensor y = mm(in[0], in[1]);
  const amp::autocast off(kCPU, {}, false);
  return mm(y.to(kFloat32), in[1]);
}

Outputs on_inside_off(const Inputs& in, const Arguments&) {
  const amp::autocast off(kCPU, {}, false);
  const Tensor y = mm(in[0], in[1]);
  const amp::autocast on(kCPU);
  return mm(y, in[1]);
}

Outputs after_no_grad(const Inputs& in, const Arguments&) {
  const Tensor y = mm(in[0], in[1]);
  const NoGradGuard no_grad;
  const Tensor z = mm(in[0], in[1]);
  const EnableGradGuard grad;
  return y + z;
}

Outputs checkpointed(const Inputs& in, const Arguments&) {
  const Tensor w = in[1];
  const Tensor y = autograd::checkpoint([w](const Tensor& x) { return relu(mm(x, w)); }, in[0]);
  return mm(y, w);
}

Outputs feed_forward(const Inputs& in, const Arguments&) {
  const Tensor y = linear(gelu(linear(in[0], in[1])), in[1]);
  return softmax(layer_norm(in[0] + y, {4}), -1);
}

const AddOperations add_autocast{
    {"autocast_weight_twice",
     [](const Inputs& in, const Arguments&) -> Outputs { return mm(mm(in[0], in[1]), in[1]); }},
    {"autocast_without_cache",
     [](const Inputs& in, const Arguments&) -> Outputs {
       const amp::autocast uncached(kCPU, {}, true, false);
       return mm(mm(in[0], in[1]), in[1]);
     }},
    {"autocast_cleared_cache",
     [](const Inputs& in, const Arguments&) -> Outputs {
       const Tensor y = mm(in[0], in[1]);
       amp::clear_autocast_cache();
       return mm(y, in[1]);
     }},
    {"autocast_off_inside", &off_inside},
    {"autocast_on_inside_off", &on_inside_off},
    {"autocast_other_dtype_inside", &in_other_dtype},
    {"autocast_after_no_grad", &after_no_grad},
    {"autocast_checkpoint", &checkpointed},
    {"autocast_custom_function",
     [](const Inputs& in, const Arguments&) -> Outputs { return Product::apply(in[0], in[1]); }},
    {"autocast_cast_inputs",
     [](const Inputs& in, const Arguments&) -> Outputs { return ExactProduct::apply(mm(in[0], in[1]), in[1]); }},
    {"autocast_in_place",
     [](const Inputs& in, const Arguments&) -> Outputs {
       const Tensor y = mm(in[0], in[1]);
       return sigmoid_(y.add_(in[0]).mul_(2.0));
     }},
    {"autocast_feed_forward", &feed_forward},
};

}  // namespace
}  // namespace brigade::lab::reference
