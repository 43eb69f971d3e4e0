// Times and batches in the payload of a half bucket are as exact as in any other.
#include "rank_case.h"

#include <brigade/autograd/functional.h>
#include <brigade/dist/buckets/payload.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/diagnosis/advice.h>
#include <brigade/dist/diagnosis/slow_rank.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>

#include <fmt/format.h>

#include <cmath>

namespace brigade::test::payload_cases {
constexpr DType kFloatingTypes[] = {kFloat64, kFloat32, kFloat16, kBFloat16};

using Kind = dist::WordKind;
constexpr Kind kRegistered[] = {Kind::Measure, Kind::Number, Kind::Number, Kind::Measure, Kind::Truth, Kind::Number,
                                Kind::Real,    Kind::Real,   Kind::Real,   Kind::Real,    Kind::Real};
constexpr size_t kLast = 10;

dist::Payload payload_of(dist::ProcessGroup& group, DType dtype) {
  dist::BucketLayout layout;
  layout.dtype = dtype;
  layout.parameters = {0};
  layout.offsets = {0};
  layout.gradient_numel = 5;
  return dist::Payload(group, layout, kRegistered);
}

// A measure after the average, where every rank holds `common` and the last one `last`.
std::string check_measure(const dist::ProcessGroupPtr& group, DType dtype, size_t index, double common, double last) {
  dist::Payload payload = payload_of(*group, dtype);
  const int ranks = group->size();
  payload.set_word(index, static_cast<uint64_t>(group->rank() == ranks - 1 ? last : common));
  payload.set_number(dist::Word::Round, 4099);
  payload.set_real(kLast, 3);
  group->all_reduce(payload.whole(), {.op = dist::ReduceOp::Avg})->wait();
  const double away = last - common;
  const double mean = common + away / ranks;
  const double variance = away * away * (ranks - 1) / ranks / ranks;
  // Float32 keeps 24 bits of a square.
  const double tolerance = dtype == kFloat32 ? 1e-6 * (mean * mean + last * last) : 1e-9 * (1 + mean * mean);
  const dist::WordReading found = payload.read_word(index);
  if (found.ranks != ranks) return fmt::format("{} ranks", found.ranks);
  if (std::abs(found.mean - mean) > 1e-6 * mean) return fmt::format("mean {} of {}", found.mean, mean);
  if (std::abs(found.variance - variance) > tolerance)
    return fmt::format("{}: variance {} instead of {}", name(dtype), found.variance, variance);
  if (!payload.all_equal(dist::Word::Round)) return "the word beside it";
  return std::abs(payload.read_word(kLast).mean - 3) < 0.02 ? "" : "the last word";
}

std::string check_words(const dist::ProcessGroupPtr& group) {
  struct Row {
    double common, last;
  };
  for (const DType dtype : kFloatingTypes) {
    for (const Row& row : {Row{300, 300}, {300, 310}, {400, 400}, {400, 460}, {4097, 4097}, {1, 0}, {65536, 2 << 17}}) {
      for (const size_t index : {0, 3}) {
        const std::string wrong = check_measure(group, dtype, index, row.common, row.last);
        if (!wrong.empty()) return fmt::format("{} and {}: {}", row.common, row.last, wrong);
      }
    }
  }
  return "";
}
const AddRankCase add_words("the payload's times and batches are exact in every dtype", &check_words,
                            {.threads = {1, 2, 3, 7, 16}});

std::string check_late(const dist::ProcessGroupPtr& group) {
  for (const DType dtype : kFloatingTypes) {
    for (const double last : {400.0, 405.0, 700.0}) {
      dist::Payload payload = payload_of(*group, dtype);
      payload.set_word(0, static_cast<uint64_t>(group->rank() == 0 ? last : 400));
      group->all_reduce(payload.whole(), {.op = dist::ReduceOp::Avg})->wait();
      const dist::WordReading found = payload.read_word(0);
      const bool late = dist::may_have_slow_rank(found.mean, found.variance, found.ranks);
      if (late != (last == 700)) return fmt::format("{}: {} ms among 400 ms", name(dtype), last);
    }
  }
  return "";
}
const AddRankCase add_late("a backward of 400 ms is late only beside faster ones, in every dtype", &check_late);

// Few ranks need few elements.
std::string check_size(const dist::ProcessGroupPtr& group) {
  const auto words = [&](DType dtype) { return payload_of(*group, dtype).tail().numel() - 1; };
  const bool two = group->size() == 2;
  // 49 counts of ranks, of 2 bits among two ranks and 3 among four: 11 and 7 of float32 in one element, 25 and 17 of float64,
  // 5 and 3 of float16, 3 and 2 of bfloat16. Then nine words that are none.
  if (words(kFloat32) != (two ? 5 : 7) + 9) return fmt::format("{} words of float32", words(kFloat32));
  if (words(kFloat64) != (two ? 2 : 3) + 9) return fmt::format("{} words of float64", words(kFloat64));
  // 20 and 40 bits, twice: of 7 bits each among two ranks in bfloat16, 6 among four; 10 and 9 in float16.
  if (words(kBFloat16) != (two ? 17 : 25) + 5 + 2 * (two ? 3 + 6 : 4 + 7))
    return fmt::format("{} words of bfloat16", words(kBFloat16));
  return words(kFloat16) == (two ? 10 : 17) + 5 + 2 * (two ? 2 + 4 : 3 + 5)
             ? ""
             : fmt::format("{} words of float16", words(kFloat16));
}
const AddRankCase add_size("words take no more elements than their counts and digits need", &check_size,
                           {.threads = {2, 4}, .shm = {2, 4}, .others = {2}});

// Advice of a program with a statistic of its own: the samples of a batch.
thread_local dist::WordReading seen;
class Watcher final : public dist::Advice, private dist::Statistic {
 public:
  dist::Statistic* statistic() override { return this; }
  std::optional<dist::Verdict> examine(dist::FinishedBackward&) override { return std::nullopt; }

 private:
  Kind kind() const override { return Kind::Measure; }
  void begin(const dist::StartedBackward& backward) override { rows_ = static_cast<uint64_t>(backward.rows); }
  uint64_t value() override { return rows_; }
  void read(const dist::WordReading& reading) override { seen = reading; }

  uint64_t rows_ = 0;
};
const dist::AddAdvice add_watcher("watcher_of_the_test", [] { return std::make_unique<Watcher>(); });

std::string check_batches(const dist::ProcessGroupPtr& group) {
  for (const DType dtype : kFloatingTypes) {
    for (const int64_t rows : {300, 3000}) {
      for (const int64_t more : {0, 100}) {
        seen = {};
        nn::Linear net(3, 2);
        net->to(dtype);
        dist::DistributedDataParallel ddp(net, group);
        mean(square(ddp(ones({rows + (group->rank() == 0 ? rows * more / 100 : 0), 3}, dtype)))).backward();
        const int ranks = group->size();
        const double away = static_cast<double>(rows * more) / 100;
        const double mean = static_cast<double>(rows) + away / ranks;
        const double variance = away * away * (ranks - 1) / ranks / ranks;
        if (seen.ranks != ranks || !seen.all_have_gradients || std::abs(seen.mean - mean) > 1e-6 * mean ||
            std::abs(seen.variance - variance) > 1e-5 * mean * mean)
          return fmt::format("{}: {} rows, {} more: {} and {}", name(dtype), rows, more, seen.mean, seen.variance);
      }
    }
  }
  return "";
}
const AddRankCase add_batches("a program's own statistic has the right mean and variance, in every dtype",
                              &check_batches);

}  // namespace brigade::test::payload_cases
