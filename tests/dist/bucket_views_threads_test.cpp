// DDP warns, once and at the place, of what gradients that are views of buckets cannot do.
#include "mechanisms_net.h"
#include "on_ranks.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/warning.h>

#include <mutex>

namespace brigade::test::bucket_views_threads_test {
using namespace brigade::test::mechanisms;  // NOLINT: the cases are about this network

// Runs `body` on two ranks and returns the warnings of both.
std::vector<std::string> warnings_of(const test::Body& body) {
  std::mutex mutex;
  std::vector<std::string> found;
  const auto before = set_warning_handler([&](const Warning& warning) {
    const std::lock_guard lock(mutex);
    found.push_back(warning.message);
  });
  test::expect_well("threads", 2, body);
  set_warning_handler(before);
  return found;
}

TEST_CASE("a gradient that is kept over zero_grad() is overwritten under views, which is said once") {
  for (const bool views : {true, false}) {
    for (const bool keeps : {true, false}) {
      CAPTURE(views);
      CAPTURE(keeps);
      const std::vector<std::string> warnings = warnings_of([&](const dist::ProcessGroupPtr& group) -> std::string {
        Net net;
        Ddp ddp(net, group, {.gradient_as_bucket_view = views});
        optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
        for (int s = 0; s < 5; ++s) {
          const Tensor kept = keeps ? net->b->weight.grad() : Tensor();
          const Values was = kept.defined() ? values_of({kept}) : Values();
          optimizer.zero_grad(s % 2 == 0);
          const bool cleared = !net->b->weight.grad().defined();
          loss_of(ddp(batch_of(group->rank(), s))).backward();
          if (kept.defined() && cleared && (values_of({kept}) == was) == views) return "what was kept";
          optimizer.step();
        }
        return "";
      });
      REQUIRE(warnings.size() == (views && keeps ? 2 : 0));  // one on each rank
      for (const std::string& warning : warnings) {
        CHECK_MESSAGE(warning.starts_with("Overwritten: the kept gradient of `b.weight` of DDP(Net)"), warning);
        CHECK_MESSAGE(warning.find("bucket_views_threads_test.cpp:") != std::string::npos, warning);
      }
    }
  }
}

TEST_CASE("create_graph under views says that the gradient has no history") {
  for (const bool views : {false, true}) {
    CAPTURE(views);
    const std::vector<std::string> warnings = warnings_of([&](const dist::ProcessGroupPtr& group) -> std::string {
      Net net;
      Ddp ddp(net, group, {.gradient_as_bucket_view = views});
      loss_of(ddp(batch_of(group->rank(), 0))).backward({.create_graph = true});
      const bool has_history = net->b->weight.grad().requires_grad();
      net->zero_grad();  // a gradient with a history and its parameter keep each other alive
      return has_history == views ? "history" : "";
    });
    REQUIRE(warnings.size() == (views ? 1 : 0));
    if (views) CHECK_MESSAGE(warnings[0].starts_with("backward with create_graph at "), warnings[0]);
  }
}

}  // namespace brigade::test::bucket_views_threads_test
