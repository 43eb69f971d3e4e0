// In these programs a layer or its weight is used under no_grad.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {

// UNU-08: the first layer runs under no_grad inside forward.
namespace no_grad_in_forward {

struct QuietImpl : PairImpl {
  Tensor forward(const Tensor& x) {
    Tensor features;
    {
      const NoGradGuard no_grad;
      features = a(x);
    }
    return b(features);
  }
};
BRIGADE_MODULE(Quiet);

std::vector<Tensor> run(const FaultContext& context) {
  Quiet net;
  auto ddp = wrap(context, net);
  mean(square(ddp(rank_batch(context)))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-08",
    .name = "no_grad_in_forward",
    .title = "a layer under no_grad inside forward",
    .expected = {.kind = "unused_parameters", .parameters = {"a.weight"}, .cause = "no_grad", .module = "a"},
    .run = &run});

}  // namespace no_grad_in_forward

// UNU-24: a teacher inside the wrapper that is not frozen, but runs under no_grad.
namespace teacher_not_frozen {

struct UnfrozenImpl : DistillationImpl {
  UnfrozenImpl() : DistillationImpl(false) {}
  Tensor forward(const Tensor& x) {
    Tensor wanted;
    {
      const NoGradGuard no_grad;
      wanted = teacher(x);
    }
    return mean(square(student(x) - wanted));
  }
};
BRIGADE_MODULE(Unfrozen);

std::vector<Tensor> run(const FaultContext& context) {
  Unfrozen net;
  auto ddp = wrap(context, net);
  ddp(rank_batch(context)).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-24",
    .name = "teacher_not_frozen",
    .title = "a teacher that is not frozen, run under no_grad",
    .expected = {.kind = "unused_parameters", .parameters = {"teacher.weight"}, .cause = "no_grad"},
    .run = &run});

}  // namespace teacher_not_frozen

// UNU-25: a converted copy of a weight is made under no_grad, kept, and used for training (what a cast cache does
// wrong).
namespace weight_cast_under_no_grad {

struct CachedImpl : PairImpl {
  Tensor copy_of_a;
  Tensor forward(const Tensor& x) {
    if (!copy_of_a.defined()) copy_of_a = a->weight.to(kFloat64);
    return linear(linear(x, copy_of_a), b->weight.to(kFloat64));
  }
};
BRIGADE_MODULE(Cached);

std::vector<Tensor> run(const FaultContext& context) {
  Cached net;
  auto ddp = wrap(context, net);
  {
    const NoGradGuard no_grad;
    net->forward(rank_batch(context).to(kFloat64));
  }
  loss_of(ddp(rank_batch(context).to(kFloat64))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "UNU-25",
                         .name = "weight_cast_under_no_grad",
                         .title = "a weight used through a copy that was made under no_grad",
                         .expected = {.kind = "unused_parameters", .parameters = {"a.weight"}, .cause = "no_grad"},
                         .run = &run});

}  // namespace weight_cast_under_no_grad

// UNU-30: a layer runs under no_grad inside a checkpointed segment.
namespace no_grad_in_a_checkpoint {

struct SegmentImpl : PairImpl {
  Tensor forward(const Tensor& x) {
    const auto segment = [this](const Tensor& in) {
      Tensor features;
      {
        const NoGradGuard no_grad;
        features = a(in);
      }
      return b(in + features);
    };
    return autograd::checkpoint(segment, x);
  }
};
BRIGADE_MODULE(Segment);

std::vector<Tensor> run(const FaultContext& context) {
  Segment net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-30",
    .name = "no_grad_in_a_checkpoint",
    .title = "no_grad inside a checkpointed segment",
    .expected = {.kind = "unused_parameters", .parameters = {"a.weight"}, .cause = "no_grad", .op = "linear"},
    .run = &run});

}  // namespace no_grad_in_a_checkpoint

}  // namespace brigade::lab
