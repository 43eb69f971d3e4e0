// In these programs a rank ends in the middle of training, by an error, an exit or a signal.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <csignal>
#include <stdexcept>
#include <thread>

#include <unistd.h>

namespace brigade::lab {

// COL-04: an exception on rank 1.
namespace exception_on_one_rank {

struct PickyImpl : ChainImpl {
  bool fails = false;
  Tensor forward(const Tensor& x) {
    if (fails) throw std::runtime_error("sample 17 has no label");
    return ChainImpl::forward(x);
  }
};
BRIGADE_MODULE(Picky);

std::vector<Tensor> run(const FaultContext& context) {
  Picky net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 3; ++step) {
    net->fails = step == 1 && context.rank() == 1 && !context.fixed;
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-04",
                         .name = "exception_on_one_rank",
                         .title = "an exception on rank 1",
                         .expected = {.kind = "rank_lost", .ranks = {1}, .cause = "exception"},
                         .run = &run});

}  // namespace exception_on_one_rank

// COL-14: rank 1 is killed in its backward.
namespace killed_in_backward {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 3; ++step) {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));  // as long as a step of a real model
    const Tensor output = ddp(rank_batch(context));
    if (step == 1 && context.rank() == 1 && !context.fixed) {
      output.register_hook([](const Tensor&) -> Tensor {
        std::raise(SIGKILL);
        return {};
      });
    }
    loss_of(output).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-14",
                         .name = "killed_in_backward",
                         .title = "rank 1 is killed in backward (SIGKILL)",
                         .expected = {.kind = "rank_lost", .ranks = {1}, .cause = "rank_gone"},
                         .run = &run,
                         .needs_processes = true});

}  // namespace killed_in_backward

// COL-25: the process of rank 1 exits with status 0 in the middle of training.
namespace exit_in_the_middle {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 3; ++step) {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));       // as long as a step of a real model
    if (step == 1 && context.rank() == 1 && !context.fixed) _exit(0);  // "the budget of this job is used up"
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-25",
                         .name = "exit_in_the_middle",
                         .title = "rank 1 exits with status 0 in the middle",
                         .expected = {.kind = "rank_lost", .ranks = {1}, .cause = "rank_gone"},
                         .run = &run,
                         .needs_processes = true});

}  // namespace exit_in_the_middle

// COL-27: a gradient hook that asserts finds an infinite gradient on rank 1, and throws in the middle of backward.
namespace assertion_in_gradient_hook {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  net->b->weight.register_hook([](const Tensor& gradient) {
    if (!all(isfinite(gradient)).item<bool>()) throw std::runtime_error("the gradient of b is not finite");
    return gradient;
  });
  for (int step = 0; step < 3; ++step) {
    Tensor x = rank_batch(context);
    if (step == 1 && context.rank() == 1 && !context.fixed) x = x * 1e30;
    const Tensor loss = loss_of(ddp(x));
    context.fault_on_next_line();
    loss.backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-27",
                         .name = "assertion_in_gradient_hook",
                         .title = "an assertion in a gradient hook throws on rank 1",
                         .expected = {.kind = "rank_failed",
                                      .ranks = {1},
                                      .cause = "exception",
                                      .words = {"the gradient of b is not finite"}},
                         .run = &run});

}  // namespace assertion_in_gradient_hook

}  // namespace brigade::lab
