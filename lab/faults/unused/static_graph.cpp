// These programs set static_graph, and a layer or a head is unused in some step.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {

// UNU-19: static_graph, and a layer that the first step skips is used in the second.
namespace static_graph_layer_comes {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  dist::DDPOptions options = context.options;
  options.static_graph = !context.fixed;
  auto ddp = wrap(context, net, options);
  for (int step = 0; step < 2; ++step) {
    net->skip_b = step == 0;
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-19",
    .name = "static_graph_layer_comes",
    .title = "static_graph: unused in step 1, used in step 2",
    .expected = {.kind = "static_graph_changed", .parameters = {"b.weight"}, .cause = "graph_changed", .module = "b"},
    .run = &run});

}  // namespace static_graph_layer_comes

// UNU-20: static_graph, and a layer that was used is skipped later.
namespace static_graph_layer_goes {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  dist::DDPOptions options = context.options;
  options.static_graph = !context.fixed;
  auto ddp = wrap(context, net, options);
  for (int step = 0; step < 4; ++step) {
    net->skip_b = step == 3;
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-20",
    .name = "static_graph_layer_goes",
    .title = "static_graph: used, later unused",
    .expected = {.kind = "static_graph_changed", .parameters = {"b.weight"}, .cause = "graph_changed", .module = "b"},
    .run = &run});

}  // namespace static_graph_layer_goes

// UNU-21: static_graph, one head never in the loss: really static.
namespace static_graph_head_never_used {

std::vector<Tensor> run(const FaultContext& context) {
  Heads net;
  dist::DDPOptions options = context.options;
  options.static_graph = true;
  auto ddp = wrap(context, net, options);
  for (int step = 0; step < 4; ++step) {
    loss_of(ddp(rank_batch(context)).first).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "UNU-21",
                         .name = "static_graph_head_never_used",
                         .title = "static_graph: a head that is never in the loss",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace static_graph_head_never_used

}  // namespace brigade::lab
