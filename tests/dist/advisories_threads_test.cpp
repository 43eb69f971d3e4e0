// Which advisories DDP gives, and where it must give none.
#include "on_ranks.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/warning.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>

#include <fmt/format.h>

#include <atomic>
#include <limits>
#include <mutex>

namespace brigade::test::advisories_threads_test {
using Scale = std::function<double(int rank, int step)>;

// Runs backwards with a loss scaled per rank and step. Returns the kind of each advisory, with its step and ranks.
std::string advised(const dist::ProcessGroupPtr& group, const Scale& loss_scale, const Scale& hook_scale = {}) {
  nn::Linear net(3, 2);
  dist::DistributedDataParallel ddp(net, group);
  int step = 0;
  if (hook_scale) net->weight.register_hook([&](const Tensor& grad) { return grad * hook_scale(group->rank(), step); });
  const Tensor x = full({4, 3}, 1 + 0.01 * group->rank());
  std::string text;
  for (; step < 12; ++step) {
    net->zero_grad();
    const size_t before = ddp.advisories().size();
    const Tensor scale = full({}, loss_scale(group->rank(), step));  // a plain number would be compared between ranks
    (square(ddp(x)).mean() * scale).backward();
    for (size_t i = before; i < ddp.advisories().size(); ++i) {
      const dist::Verdict& verdict = ddp.advisories()[i];
      text += fmt::format("{} at {} on", verdict.kind, step);
      for (const int rank : verdict.ranks)
        text += fmt::format(" {}", rank);
      text += ";";
    }
  }
  return text;
}

std::string expect(const std::string& found, const std::string& expected) {
  return found == expected ? "" : "advised: '" + found + "', expected '" + expected + "'";
}

TEST_CASE("a rank whose gradients are far larger is named after six backwards in a row, and once") {
  test::on_threads([](const std::string& backend, int ranks) {
    test::expect_well(backend, ranks, [](const dist::ProcessGroupPtr& group) {
      return expect(advised(group, [](int rank, int) { return rank == 1 ? 1000.0 : 1.0; }),
                    "gradient_outlier at 5 on 1;");
    });
  });
}

TEST_CASE("a warning goes to the handler of all warnings, once and from rank 0") {
  test::on_threads([](const std::string& backend, int ranks) {
    std::mutex mutex;
    std::vector<Warning> told;
    const auto before = set_warning_handler([&](const Warning& warning) {
      const std::lock_guard lock(mutex);
      told.push_back(warning);
    });
    test::expect_well(backend, ranks, [](const dist::ProcessGroupPtr& group) {
      return expect(advised(group, [](int rank, int) { return rank == 1 ? 1000.0 : 1.0; }),
                    "gradient_outlier at 5 on 1;");
    });
    set_warning_handler(before);
    REQUIRE(told.size() == 1);
    CHECK(told[0].message.find("rank 1") != std::string::npos);
    CHECK(!told[0].advice.empty());
  });
}

TEST_CASE("errors that the program catches are printed at the second in a row, a deferred one as an error too") {
  using ReportAt = dist::ReducerOptions::ReportAt;
  for (const ReportAt report_at : {ReportAt::Backward, ReportAt::NextForward}) {
    for (const int errors : {1, 2}) {
      std::atomic<int> printed = 0;
      const auto before = set_warning_handler([&](const Warning&) { ++printed; });
      test::expect_well("threads", 2, [&](const dist::ProcessGroupPtr& group) {
        nn::Linear net(3, 2);
        dist::DistributedDataParallel ddp(net, group, {.report_at = report_at});
        int caught = 0;
        for (int step = 0; caught < errors; ++step) {
          try {
            linear(ddp(ones({1, 3})).detach() * 0.0 + 1.0, net->weight.t()).sum().backward();  // without the bias
          } catch (const dist::ReductionError&) {
            ++caught;
          }
        }
        return std::string();
      });
      set_warning_handler(before);
      CHECK(printed == errors - 1);
    }
  }
}

TEST_CASE("gradients that differ in size now and then, or on another rank each time, are no matter") {
  test::on_threads([](const std::string& backend, int ranks) {
    test::expect_well(backend, ranks, [](const dist::ProcessGroupPtr& group) {
      // Five in a row, a pause, five in a row.
      return expect(
          advised(group, [](int rank, int step) { return rank == 1 && step != 5 && step < 11 ? 1000.0 : 1.0; }), "");
    });
    test::expect_well(backend, ranks, [](const dist::ProcessGroupPtr& group) {
      return expect(advised(group, [](int rank, int step) { return rank == step % 2 ? 1000.0 : 1.0; }), "");
    });
    test::expect_well(backend, ranks, [](const dist::ProcessGroupPtr& group) {
      return expect(advised(group, [](int, int step) { return step % 2 ? 1000.0 : 1.0; }), "");
    });
  });
}

TEST_CASE("a gradient hook that all ranks share is no matter, whatever it does on one of them now and then") {
  test::on_threads([](const std::string& backend, int ranks) {
    test::expect_well(backend, ranks, [](const dist::ProcessGroupPtr& group) {
      return expect(advised(
                        group, [](int, int) { return 1.0; },
                        [](int rank, int step) { return rank == 1 && step == 3 ? 1000.0 : 1.0; }),
                    "");
    });
  });
}

TEST_CASE("a world of one compares itself with nobody: no advice, and no collective but its buckets'") {
  for (const DType dtype : {kFloat32, kBFloat16}) {
    CAPTURE(name(dtype));
    const dist::ProcessGroupPtr group = dist::make_thread_groups(1).front();
    nn::Linear net(3, 2);
    net->to(dtype);
    dist::DistributedDataParallel ddp(net, group);
    const Tensor x = full({53, 3}, 0.5, {dtype});  // 53 * 53 is rounded in bfloat16
    for (int step = 0; step < 30; ++step) {
      net->zero_grad();
      square(ddp(x)).mean().backward();
    }
    CHECK(ddp.advisories().empty());
    for (const dist::CollectiveInfo& info : group->flight_recorder().entries()) {
      CAPTURE(describe(info));
      for (const char* question : {"ready times", "sizes of gradients", "batch sizes"})
        CHECK(info.topic.purpose.text() != question);
    }
  }
}

TEST_CASE("batches of one size are no matter in a dtype that rounds their squares; of two sizes they are reported") {
  test::on_threads([](const std::string& backend, int ranks) {
    for (const int64_t more : {0, 7}) {
      test::expect_well(backend, ranks, [more](const dist::ProcessGroupPtr& group) {
        nn::Linear net(3, 2);
        net->to(kBFloat16);
        dist::DistributedDataParallel ddp(net, group);
        const Tensor x = full({53 + (group->rank() == 1 ? more : 0), 3}, 0.5, {kBFloat16});
        for (int step = 0; step < 3; ++step) {
          net->zero_grad();
          square(ddp(x)).mean().backward();
        }
        std::string kinds;
        for (const dist::Verdict& verdict : ddp.advisories())
          kinds += verdict.kind + ";";
        return expect(kinds, more == 0 ? "" : "uneven_batches;");
      });
    }
  });
}

TEST_CASE("ranks that train on the same data are informed after six backwards, and only they") {
  const auto kinds = [](const dist::ProcessGroupPtr& group, const std::function<Tensor(int step)>& batch) {
    manual_seed(1);
    nn::Sequential net(nn::Linear(3, 4), nn::Tanh(), nn::Linear(4, 2));
    // Several buckets.
    dist::DistributedDataParallel ddp(net, group, {.bucket_cap_mb = 1e-4, .first_bucket_mb = 1e-4});
    std::string text;
    for (int step = 0; step < 14; ++step) {
      net->zero_grad();
      const size_t before = ddp.advisories().size();
      square(ddp(batch(step))).mean().backward();
      for (size_t i = before; i < ddp.advisories().size(); ++i)
        text += fmt::format("{} at {};", ddp.advisories()[i].kind, step);
    }
    return text;
  };
  test::on_threads([&](const std::string& backend, int ranks) {
    test::expect_well(backend, ranks, [&](const dist::ProcessGroupPtr& group) {
      return expect(kinds(group,
                          [](int step) {
                            RandomGenerator same(static_cast<uint64_t>(step));
                            return randn({5, 3}, kFloat32, &same);
                          }),
                    "same_batches at 5;");
    });
    // Norms that are equal by chance: the ranks' samples differ only in sign.
    test::expect_well(backend, ranks, [&](const dist::ProcessGroupPtr& group) {
      nn::Linear net(3, 2);
      net->bias.requires_grad_(false);
      dist::DistributedDataParallel ddp(net, group);
      for (int step = 0; step < 14; ++step) {
        net->zero_grad();
        ddp(full({1, 3}, group->rank() == 0 ? 1.0 : -1.0)).sum().backward();
      }
      return expect(ddp.advisories().empty() ? "" : ddp.advisories()[0].kind, "");
    });
    // Non-finite norms are equal whatever the data.
    test::expect_well(backend, ranks, [&](const dist::ProcessGroupPtr& group) {
      return expect(kinds(group,
                          [&](int step) {
                            RandomGenerator own(static_cast<uint64_t>(100 * step + group->rank()));
                            return randn({5, 3}, kFloat32, &own) * std::numeric_limits<double>::quiet_NaN();
                          }),
                    "non_finite_gradients at 0;");
    });
    test::expect_well(backend, ranks, [&](const dist::ProcessGroupPtr& group) {
      return expect(kinds(group,
                          [&](int step) {
                            RandomGenerator own(static_cast<uint64_t>(100 * step + group->rank()));
                            return randn({5, 3}, kFloat32, &own);
                          }),
                    "");
    });
  });
}

TEST_CASE("another number of micro-batches on one rank is reported in the backward that reduces them") {
  const auto told = [](const dist::ProcessGroupPtr& group, const std::function<int(int rank)>& local) {
    nn::Linear net(3, 2);
    dist::DistributedDataParallel ddp(net, group);
    std::string text;
    for (int step = 0; step < 3; ++step) {
      net->zero_grad();
      for (int m = 0; m < local(group->rank()); ++m) {
        const auto no_sync = ddp.no_sync();
        square(ddp(full({4, 3}, 1.0 + group->rank() + m))).mean().backward();
      }
      square(ddp(full({4, 3}, 0.5 + group->rank()))).mean().backward();
    }
    for (const dist::Verdict& verdict : ddp.advisories())
      text += fmt::format("{} in {} on {};", verdict.kind, verdict.iteration, dist::list_of(verdict.ranks));
    return text;
  };
  test::on_threads([&](const std::string& backend, int ranks) {
    test::expect_well(backend, ranks, [&](const dist::ProcessGroupPtr& group) {
      return expect(told(group, [](int) { return 2; }), "");
    });
    test::expect_well(backend, ranks, [&](const dist::ProcessGroupPtr& group) {
      const std::string odd = group->size() == 2 ? "0 and 1" : "1";
      return expect(told(group, [](int rank) { return rank == 1 ? 3 : 2; }),
                    "uneven_micro_batches in 1 on " + odd + ";");
    });
  });
}

}  // namespace brigade::test::advisories_threads_test
