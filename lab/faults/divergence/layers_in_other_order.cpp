// DIV-17: rank 1 registers its layers in another order (as a hash map would).
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace layers_in_other_order {

struct OrderedImpl : nn::Module {
  nn::Linear enc{nullptr}, dec{nullptr};
  explicit OrderedImpl(bool reversed) {
    enc = nn::Linear(4, 4, false);
    dec = nn::Linear(4, 4, false);
    if (reversed) register_module("dec", dec);
    register_module("enc", enc);
    if (!reversed) register_module("dec", dec);
  }
  Tensor forward(const Tensor& x) { return dec(enc(x)); }
};
BRIGADE_MODULE(Ordered);

std::vector<Tensor> run(const FaultContext& context) {
  Ordered net(context.rank() == 1 && !context.fixed);
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-17",
                         .title = "registration order differs on rank 1",
                         .expected = {.kind = "model_mismatch",
                                      .parameters = {"dec.weight", "enc.weight"},
                                      .ranks = {1},
                                      .cause = "model_differs"},
                         .run = &run});

}  // namespace layers_in_other_order
}  // namespace brigade::lab
