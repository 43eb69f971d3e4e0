// DDP under autocast: gradients are float32, and are the mean of the ranks' gradients.
#include "mechanisms_net.h"
#include "on_ranks.h"

#include <brigade/amp/autocast.h>

namespace brigade::test::autocast_threads_test {
using namespace brigade::test::mechanisms;  // NOLINT: the cases are about this network

Net float32_net(bool checkpointed) {
  manual_seed(1);
  Net net;
  net->to(kFloat32);
  net->checkpointed = checkpointed;
  return net;
}

// Two micro-batches in one region.
template <class Model>
void backward_twice(Model& model, int rank, const std::function<void(const Tensor& loss)>& first) {
  const amp::autocast region(kCPU, kBFloat16);
  first(loss_of(model(batch_of(rank, 0).to(kFloat32)).to(kFloat32)));
  loss_of(model(batch_of(rank, 1).to(kFloat32)).to(kFloat32)).backward();
}

// The mean over the ranks, computed without DDP.
Values mean_of_gradients(int ranks, bool checkpointed) {
  Values mean;
  for (int rank = 0; rank < ranks; ++rank) {
    Net net = float32_net(checkpointed);
    backward_twice(net, rank, [](const Tensor& loss) { loss.backward(); });
    std::vector<Tensor> gradients;
    for (const Tensor& parameter : net->parameters())
      gradients.push_back(parameter.grad());
    const Values own = values_of(gradients);
    mean.resize(own.size());
    for (size_t i = 0; i < own.size(); ++i)
      mean[i] += own[i] / ranks;
  }
  return mean;
}

TEST_CASE("gradients under autocast are averaged in float32, checkpointed or not, in buckets or beside them") {
  for (const bool checkpointed : {false, true}) {
    for (const bool views : {true, false}) {
      CAPTURE(checkpointed);
      CAPTURE(views);
      const Values expected = mean_of_gradients(2, checkpointed);
      test::expect_well("threads", 2, [&](const dist::ProcessGroupPtr& group) -> std::string {
        Net net = float32_net(checkpointed);
        Ddp ddp(net, group, {.gradient_as_bucket_view = views});
        backward_twice(ddp, group->rank(), [&](const Tensor& loss) {
          const auto local = ddp.no_sync();
          loss.backward();
        });
        std::vector<Tensor> gradients;
        for (const Tensor& parameter : net->parameters()) {
          if (parameter.grad().dtype() != kFloat32) return "another dtype";
          gradients.push_back(parameter.grad());
        }
        return compare(values_of(gradients), expected, 1e-6);
      });
    }
  }
}

TEST_CASE("a loss that float16 could not hold is blamed on the operation that left its range, with the dtype") {
  test::expect_well("threads", 2, [](const dist::ProcessGroupPtr& group) -> std::string {
    Net net = float32_net(false);
    {
      const NoGradGuard no_grad;
      net->a->weight.fill_(1);
      net->b->weight.fill_(1);
      net->c->weight.fill_(30000);  // eight features of 1: beyond 65504
    }
    Ddp ddp(net, group);
    const dist::AdvisoryCollector quiet;
    const amp::autocast region(kCPU, kFloat16);
    const Tensor output = ddp(ones({4, 4}) * 10.0);
    (output * output).sum().backward();
    for (const dist::Verdict& verdict : ddp.advisories()) {
      if (verdict.kind != "non_finite_gradients") continue;
      const bool says = verdict.message.find("the result of linear in float16 at") != std::string::npos;
      return says ? "" : verdict.message;
    }
    return "nothing was said";
  });
}

}  // namespace brigade::test::autocast_threads_test
