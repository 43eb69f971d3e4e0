// OK-37: two modules share a layer, and each has a wrapper; their losses have a backward each.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace layer_of_two_wrappers {

struct HeadImpl : nn::Module {
  nn::Linear body{nullptr}, head{nullptr};
  explicit HeadImpl(const nn::Linear& shared) {
    head = register_module("head", nn::Linear(4, 4, false));
    body = register_module("body", shared);
  }
  Tensor forward(const Tensor& x) { return head(brigade::tanh(body(x))); }
};
BRIGADE_MODULE(Head);

std::vector<Tensor> run(const FaultContext& context) {
  const nn::Linear body(4, 4, false);
  Head first(body);
  Head second(body);
  second->to(context.device);
  auto a = wrap(context, first);
  dist::DistributedDataParallel<Head> b(second, context.group, context.options);
  std::vector<Tensor> parameters = first->parameters();
  parameters.push_back(second->head->weight);
  optim::SGD optimizer(parameters, {.lr = 0.1, .momentum = 0.9});
  for (int step = 0; step < 3; ++step) {
    const Tensor x = rank_batch(context);
    optimizer.zero_grad();
    mean(square(a(x))).backward();
    mean(square(b(x) - 1.0)).backward();
    optimizer.step();
  }
  return parameters;
}

const AddFault add(Fault{
    .id = "OK-37", .title = "a layer of two modules, each in a wrapper", .expected = {.detected = false}, .run = &run});

}  // namespace layer_of_two_wrappers
}  // namespace brigade::lab
