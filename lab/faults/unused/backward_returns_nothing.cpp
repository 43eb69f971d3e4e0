// UNU-29: the backward of a custom function returns no gradient for one of its arguments.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <brigade/autograd/function.h>

namespace brigade::lab {
namespace backward_returns_nothing {

// x * y
struct Product : autograd::Function<Product> {
  static Tensor forward(autograd::AutogradContext& ctx, const Tensor& x, const Tensor& y, bool forgets) {
    ctx.save_for_backward({x, y});
    ctx.saved_data["forgets"] = forgets;
    return x * y;
  }
  static std::vector<Tensor> backward(autograd::AutogradContext& ctx, const std::vector<Tensor>& grads) {
    const std::vector<Tensor> saved = ctx.get_saved_variables();
    const bool forgets = std::any_cast<bool>(ctx.saved_data["forgets"]);
    return {grads[0] * saved[1], forgets ? Tensor() : grads[0] * saved[0], {}};
  }
};

struct MultipliedImpl : PairImpl {
  bool forgets = false;
  Tensor forward(const Tensor& x) { return Product::apply(a(x), b(x), forgets); }
};
BRIGADE_MODULE(Multiplied);

std::vector<Tensor> run(const FaultContext& context) {
  Multiplied net;
  net->forgets = !context.fixed;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "UNU-29",
                         .title = "a custom function that returns no gradient",
                         .expected = {.kind = "unused_parameters",
                                      .parameters = {"b.weight"},
                                      .cause = "gradient_not_returned",
                                      .op = "Product"},
                         .run = &run});

}  // namespace backward_returns_nothing
}  // namespace brigade::lab
