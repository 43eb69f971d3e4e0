// Brigade's own advice at the end of a backward, on synthetic numbers. Each kind has a healthy twin, which must give no
// verdict and need no exchange between ranks.
#include "fake_backward.h"

#include <brigade/autograd/meta.h>
#include <brigade/dist/diagnosis/outlier.h>
#include <brigade/dist/diagnosis/slow_rank.h>

#include <doctest/doctest.h>

#include <limits>

namespace brigade::test::advice_threads_test {
using dist::CauseKind;
using dist::Severity;
using test::Advised;
using test::Change;
using test::FakeBackward;

void change_nothing(int, FakeBackward&) {}

// The backwards that gave a verdict, counted from 1.
std::vector<size_t> said(const Advised& advised) {
  std::vector<size_t> backwards;
  for (size_t i = 0; i < advised.verdicts.size(); ++i) {
    if (advised.verdicts[i]) backwards.push_back(i + 1);
  }
  return backwards;
}

int exchanges(const Advised& advised) {
  int sum = 0;
  for (const int each : advised.exchanges)
    sum += each;
  return sum;
}

TEST_CASE("a healthy backward is asked about by every advice: none exchanges, none says a word") {
  // Linked into every program, though nothing names them.
  for (const char* kind : {"gradient_outlier", "non_finite_gradients", "nothing_unused", "slow_rank", "uneven_batches",
                           "uneven_factors"}) {
    CAPTURE(kind);
    REQUIRE(dist::all_advice().contains(kind));
    const Advised advised = test::advise(kind, 3, std::vector<Change>(12, change_nothing));
    CHECK(said(advised).empty());
    CHECK(exchanges(advised) == 0);
  }
}

TEST_CASE("advice has a name of its own, and something that makes it") {
  const auto none = [] { return std::unique_ptr<dist::Advice>(); };
  CHECK_THROWS_WITH_AS(dist::AddAdvice("slow_rank", none),
                       doctest::Contains("there is advice 'slow_rank' already; choose another name"), ValueError);
  CHECK_THROWS_AS(dist::AddAdvice("made_by_nothing", nullptr), ValueError);
  CHECK(!dist::all_advice().contains("made_by_nothing"));
}

TEST_CASE("uneven_batches says each rank's share, once; equal ones are left alone after eight looks") {
  const auto rows = [](std::vector<int64_t> of_ranks) {
    return [of_ranks](int rank, FakeBackward& backward) {
      backward.reading = {.ranks = static_cast<int>(of_ranks.size()), .mean = 3, .variance = 6};
      backward.started.rows = of_ranks[static_cast<size_t>(rank)];
    };
  };
  const Advised uneven =
      test::advise("uneven_batches", 4, {rows({3, 3, 3, 3}), rows({7, 1, 1, 1}), rows({7, 1, 1, 1})});
  CHECK(said(uneven) == std::vector<size_t>{2});
  const dist::Verdict& verdict = *uneven.verdicts[1];
  CHECK(verdict.kind == "uneven_batches");
  CHECK(verdict.severity == Severity::Warning);
  CHECK(verdict.iteration == 2);
  CHECK(verdict.ranks == std::vector<int>{0, 1, 2, 3});
  CHECK(verdict.cause.text.find("rank 0 has a weight of 0.357") != std::string::npos);
  CHECK(uneven.exchanges == std::vector<int>{1, 1, 0});

  const Advised even = test::advise("uneven_batches", 2, std::vector<Change>(12, rows({3, 3})));
  CHECK(said(even).empty());
  CHECK(exchanges(even) == 8);
}

TEST_CASE("non_finite_gradients: the first rank's cause, all ranks and parameters; in the first backward of several") {
  const Change bad = [](int rank, FakeBackward& backward) {
    backward.sizes.non_finite = 2;
    if (rank == 1) {
      backward.bad.loss = true;
      backward.bad.text = "log at loss.cpp:3";
      backward.bad.parameters = {0, 2};
    } else if (rank == 3) {
      backward.bad.parameters = {2};
    }
  };
  const Advised advised = test::advise("non_finite_gradients", 4, {bad, bad, change_nothing, bad});
  CHECK(said(advised) == std::vector<size_t>{1, 4});
  CHECK(advised.exchanges == std::vector<int>{1, 0, 0, 1});
  const dist::Verdict& verdict = *advised.verdicts[0];
  CHECK(verdict.severity == Severity::Warning);
  CHECK(verdict.ranks == std::vector<int>{1, 3});
  CHECK(verdict.cause.text == "log at loss.cpp:3");
  REQUIRE(verdict.parameters.size() == 2);
  CHECK(verdict.parameters[1].name == "c");
  CHECK(verdict.parameters[1].missing_ranks == std::vector<int>{1, 3});
  CHECK(verdict.message.starts_with("Infinite or NaN: the gradients of a.weight, c on ranks 1 and 3"));
}

TEST_CASE("non_finite_gradients: a loss that nobody has looked at yet is to blame, a finite one is not") {
  for (const bool finite : {true, false}) {
    CAPTURE(finite);
    const Advised advised = test::advise("non_finite_gradients", 2, {[&](int rank, FakeBackward& backward) {
                                           backward.sizes.non_finite = 1;
                                           if (rank == 0) return;
                                           const double infinite = std::numeric_limits<double>::infinity();
                                           backward.bad.device_losses = {full({}, finite ? 2.0 : infinite)};
                                           backward.bad.parameters = {1};
                                         }});
    REQUIRE(advised.verdicts[0].has_value());
    CHECK(advised.verdicts[0]->ranks == std::vector<int>{1});
    CHECK(advised.verdicts[0]->cause.text.starts_with(
        finite ? "the loss was finite, and a gradient became infinite or NaN in the backward at "
               : "the loss of the backward at "));
  }
}

TEST_CASE("gradient_outlier is reported after six backwards in a row, and the count begins again after a sound one") {
  const Change large = [](int rank, FakeBackward& backward) {
    backward.sizes.outlier = true;
    backward.sums = {rank == 2 ? 8192.0 : 8.0, 32, 0};
  };
  std::vector<Change> backwards(5, large);
  backwards.push_back(change_nothing);
  for (int i = 0; i < dist::OutlierStreak::kBackwards + 1; ++i)
    backwards.push_back(large);
  const Advised advised = test::advise("gradient_outlier", 3, backwards);
  CHECK(said(advised) == std::vector<size_t>{12});
  CHECK(exchanges(advised) == 11);  // none in the sound backward, none after the verdict
  const dist::Verdict& verdict = *advised.verdicts[11];
  CHECK(verdict.cause.kind == CauseKind::NormOutlier);
  CHECK(verdict.ranks == std::vector<int>{2});
  REQUIRE(verdict.parameters.size() == 1);
  CHECK(verdict.parameters[0].name == "a.weight");
  CHECK(verdict.parameters[0].ready_ranks == std::vector<int>{0, 1});
  CHECK(verdict.message.find(
            "Gradient 32 times that of the other ranks: a.weight, on rank 2, before the reduction in backward 12 at") !=
        std::string::npos);
}

TEST_CASE("gradient_outlier says by which factor a rank's gradients are smaller") {
  const Change small = [](int rank, FakeBackward& backward) {
    backward.sizes.outlier = true;
    backward.sums = {rank == 1 ? 8.0 : 8192.0, 32, 0};
  };
  const Advised advised =
      test::advise("gradient_outlier", 3, std::vector<Change>(dist::OutlierStreak::kBackwards, small));
  REQUIRE(advised.verdicts.back().has_value());
  CHECK(advised.verdicts.back()->ranks == std::vector<int>{1});
  CHECK_MESSAGE(advised.verdicts.back()->message.find("Gradient 0.0312 times that of the "
                                                      "other ranks") != std::string::npos,
                advised.verdicts.back()->message);
}

TEST_CASE("gradient_outlier names the gradient hook that changes gradients on one rank alone, at once") {
  const auto with_hook = [](bool changes) {
    return test::advise("gradient_outlier", 3, {[changes](int rank, FakeBackward& backward) {
                          backward.sizes.outlier = true;
                          backward.sums = {rank == 2 ? 8192.0 : 8.0, 32, 0};
                          const Tensor& tensor = backward.named[0].tensor;
                          tensor.requires_grad_(true);
                          if (rank != 2) return;
                          const uint64_t handle = tensor.register_hook([](const Tensor& grad) { return grad; });
                          if (changes) autograd::meta(tensor)->note_changing_hook(handle);
                        }});
  };
  CHECK(said(with_hook(false)).empty());
  const Advised advised = with_hook(true);
  CHECK(said(advised) == std::vector<size_t>{1});
  CHECK(advised.verdicts[0]->cause.kind == CauseKind::HookDiffers);
  CHECK(advised.verdicts[0]->advice == "register the same gradient hooks on every rank, or none");
  const Place& place = advised.verdicts[0]->cause.place;
  CHECK(place.file.ends_with("advice_threads_test.cpp"));
  CHECK(advised.verdicts[0]->cause.text == "a gradient hook is registered there at " + to_string(place));
}

TEST_CASE("gradient_outlier looks 64 times where nobody stands out") {
  const Advised advised =
      test::advise("gradient_outlier", 2,
                   std::vector<Change>(70, [](int, FakeBackward& backward) { backward.sizes.outlier = true; }));
  CHECK(said(advised).empty());
  CHECK(exchanges(advised) == 64);
}

TEST_CASE("slow_rank names rank and parameter after four backwards in a row, once") {
  const auto late = [](int which) {
    return [which](int rank, FakeBackward& backward) {
      constexpr int64_t kMs = 1'000'000;
      backward.reading = {.ranks = 3, .mean = 17, .variance = 288};  // 41, 5 and 5 ms
      backward.seen.began = kMs;
      // The last parameter is ready first; it has no gradient on rank 0.
      backward.seen.ready = {rank == which ? 41 * kMs : 5 * kMs, 3 * kMs, rank == 0 ? 0 : 2 * kMs};
    };
  };
  const Advised advised =
      test::advise("slow_rank", 3, {late(1), late(1), late(2), late(1), late(1), late(1), late(1), late(1)});
  CHECK(said(advised) == std::vector<size_t>{3 + dist::SlowRankStreak::kBackwards});
  CHECK(advised.exchanges == std::vector<int>{0, 0, 0, 1, 1, 1, 1, 0});
  const dist::Verdict& verdict = *advised.verdicts[6];
  CHECK(verdict.cause.kind == CauseKind::Slow);
  CHECK(verdict.ranks == std::vector<int>{1});
  CHECK(verdict.parameters[0].name == "a.weight");
  CHECK(verdict.cause.text ==
        "its last gradient came after 40.0 ms, those of the others after 4.0 ms; the first late one is a.weight");
  CHECK(verdict.message.starts_with("Rank 1 was late in 4 backwards in a row, up to number "));
}

TEST_CASE(
    "slow_rank asks no rank before there may be something to say: a late backward changes no number of a collective") {
  const Change late = [](int rank, FakeBackward& backward) {
    backward.reading = {.ranks = 2, .mean = 450, .variance = 450 * 450};
    backward.seen.began = 1;
    backward.seen.ready = std::vector<int64_t>(3, rank == 1 ? 900'000'000 : 2);
  };
  const Advised advised = test::advise("slow_rank", 2, {late, late, late, change_nothing, late, change_nothing, late});
  CHECK(said(advised).empty());
  CHECK(exchanges(advised) == 0);
}

TEST_CASE("nothing_unused is noted in the tenth backward, unless a rank left something unused") {
  const Change used = [](int, FakeBackward& backward) { backward.finds_unused = true; };
  const Advised advised = test::advise("nothing_unused", 2, std::vector<Change>(12, used));
  CHECK(said(advised) == std::vector<size_t>{10});
  CHECK(advised.verdicts[9]->severity == Severity::Note);
  CHECK(advised.verdicts[9]->message.find("in the first 10 backwards") != std::string::npos);
  CHECK(advised.verdicts[9]->message.find("12 B of flags in 2 buckets") != std::string::npos);

  std::vector<Change> backwards(12, used);
  backwards[3] = [](int, FakeBackward& backward) {
    backward.finds_unused = true;
    backward.found.users[1] = 1;
  };
  CHECK(said(test::advise("nothing_unused", 2, backwards)).empty());
}

}  // namespace brigade::test::advice_threads_test
