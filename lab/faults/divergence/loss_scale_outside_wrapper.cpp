// DIV-10: a learnable scale of the loss lives outside the wrapper.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <optional>

namespace brigade::lab {
namespace loss_scale_outside_wrapper {

struct ScaleImpl : nn::Module {
  Tensor logit_scale;
  ScaleImpl() { logit_scale = register_parameter("logit_scale", ones({1})); }
  Tensor forward(const Tensor& x) { return x * logit_scale; }
};
BRIGADE_MODULE(Scale);

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  Scale scale;
  scale->to(context.device);
  auto ddp = wrap(context, net);
  std::optional<dist::DistributedDataParallel<Scale>> second;
  if (context.fixed) second.emplace(scale, context.group, context.options);
  const Tensor output = ddp(rank_batch(context));
  loss_of(scale(output)).backward();
  std::vector<Tensor> parameters = net->parameters();
  parameters.push_back(scale->logit_scale);
  sgd_step(parameters);
  return parameters;
}

const AddFault add(Fault{
    .id = "DIV-10",
    .title = "a learnable loss scale outside the wrapper",
    .expected = {.kind = "unmanaged_parameters", .parameters = {"logit_scale"}, .cause = "outside_wrapper"},
    .run = &run});

}  // namespace loss_scale_outside_wrapper
}  // namespace brigade::lab
