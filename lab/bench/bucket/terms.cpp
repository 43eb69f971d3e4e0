// Times the parts of the reducer one after the other, and a whole backward.
#include <brigade/lab/bench/bucket/terms.h>

#include <brigade/autograd/tape.h>
#include <brigade/core/clock.h>
#include <brigade/core/error.h>
#include <brigade/core/factory.h>
#include <brigade/dist/checks/hand_updates.h>
#include <brigade/dist/observers/norm_meter.h>
#include <brigade/dist/timeline/timeline.h>
#include <brigade/kernels/bucket.h>
#include <brigade/kernels/elementwise.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace brigade::lab::bench {
namespace {

using dist::Word;

double us_since(int64_t begin) { return static_cast<double>(now_ns() - begin) * 1e-3; }

struct NamedHook {
  const char* name;
  dist::CommHookPtr (*make)();
};
constexpr NamedHook kHooks[] = {{"none", []() -> dist::CommHookPtr { return nullptr; }},
                                {"allreduce", &dist::allreduce_hook},
                                {"fp16_compress", &dist::fp16_compress_hook},
                                {"bf16_compress", &dist::bf16_compress_hook},
                                {"powersgd", [] { return dist::powersgd_hook({}); }},
                                {"noop", &dist::noop_hook}};

constexpr const char* kPlacings[] = {"views", "handed", "copies"};

GivenGradients given(const BucketCase& what, const dist::ProcessGroup& group, Gives gives) {
  return GivenGradients(GivenGradientsOptions{.bytes = what.bytes,
                                              .count = what.parameters,
                                              .dtype = what.dtype,
                                              .gives = gives,
                                              .seed = static_cast<uint64_t>(group.rank()) + 1});
}

// Everything in one bucket.
dist::DDPOptions ddp_options(const BucketCase& what) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  return {.gradient_as_bucket_view = what.placing != Placing::Copies, .bucket_cap_mb = kNone, .first_bucket_mb = kNone};
}

dist::ReducerSetup setup_of(const GivenGradients& module, const dist::ProcessGroupPtr& group, const std::string& hook) {
  constexpr int64_t kNone = int64_t{1} << 62;
  dist::ReducerSetup setup;
  for (const auto& [parameter, tensor] : module->named_parameters())
    setup.parameters.push_back({parameter, tensor});
  setup.group = group;
  // alone() leaves the gradients of the parameters where they are.
  setup.options = {.gradient_as_bucket_view = false, .limits = {kNone, kNone}};
  setup.hook = make_hook(hook);
  return setup;
}

}  // namespace

const char* name(Placing placing) noexcept { return kPlacings[static_cast<size_t>(placing)]; }

Placing find_placing(const std::string& text) {
  for (size_t i = 0; i < std::size(kPlacings); ++i) {
    if (text == kPlacings[i]) return static_cast<Placing>(i);
  }
  throw ValueError("unknown way of placing gradients '{}'; known are views, handed, copies", text);
}

dist::CommHookPtr make_hook(const std::string& text) {
  std::string known;
  for (const NamedHook& hook : kHooks) {
    if (text == hook.name) return hook.make();
    known += (known.empty() ? "" : ", ") + std::string(hook.name);
  }
  throw ValueError("unknown communication hook '{}'; known are {}", text, known);
}

MeasuredBucket::MeasuredBucket(const BucketCase& what, dist::ProcessGroupPtr group)
    : case_(what),
      group_(std::move(group)),
      plain_(given(what, *group_, Gives::Writes)),
      wrapped_(given(what, *group_, what.placing == Placing::Handed ? Gives::Hands : Gives::Writes)),
      ddp_(wrapped_, group_, ddp_options(what)),
      advice_(dist::make_all_advice()),
      setup_(setup_of(plain_, group_, what.hook)) {
  for (dist::Statistic* const each : dist::statistics_of(advice_))
    setup_.words.push_back(each);
  setup_.options.meter = std::make_shared<dist::NormMeter>();
  setup_.options.observers.push_back(std::make_shared<dist::HandUpdates>(std::vector<dist::NamedParameter>()));
  setup_.register_observers();
  if (dist::CommHookPtr hook = make_hook(what.hook)) ddp_.register_comm_hook(std::move(hook));
  buckets_.emplace(setup_);
  for (const Tensor& gradient : plain_->gradients)
    own_.push_back(empty_like(gradient));
  together();  // the first backward cuts the buckets again
}

int64_t MeasuredBucket::payload_bytes() const { return static_cast<int64_t>((*buckets_)[0].payload.whole().nbytes()); }

BucketTerms MeasuredBucket::alone() {
  dist::Bucket& bucket = (*buckets_)[0];
  dist::Payload& payload = bucket.payload;
  const auto count = static_cast<uint32_t>(setup_.count());
  BucketTerms terms;
  const auto timed = [](double& term, const auto& part) {
    const int64_t begin = now_ns();
    part();
    term += us_since(begin);
  };
  // In a backward, gradients have just been written when they reach a bucket: to its slots, or to memory of their
  // own.
  const bool copies_in = case_.placing != Placing::Views;
  for (uint32_t i = 0; i < count; ++i)
    kernels::copy(copies_in ? own_[i] : buckets_->slot(i).view, plain_->gradients[i]);
  if (copies_in) {
    timed(terms.flatten, [&] {
      for (uint32_t i = 0; i < count; ++i)
        kernels::copy(buckets_->slot(i).view, own_[i]);
    });
  }
  double squares = 0;
  timed(terms.numbers, [&] {
    for (uint32_t i = 0; i < count; ++i)
      squares += kernels::sum_of_squares(buckets_->slot(i).view);
    if (setup_.hook) squares += std::abs(kernels::probe(payload.gradients()));
  });
  timed(terms.flags, [&] {
    for (uint32_t i = 0; i < count; ++i)
      payload.set_flag(buckets_->slot(i).index, true);
    for (const Word word : {Word::Present, Word::Failed, Word::Joined, Word::Changed})
      payload.set(word, word == Word::Present);
    payload.set_number(Word::Round, 1);
    for (size_t i = 0; i < setup_.registered.size(); ++i) {
      if (setup_.registered[i] == dist::WordKind::Real) {
        payload.set_real(i, squares > 0 ? 1 : 0);
      } else {
        payload.set_word(i, 1);
      }
    }
  });
  group_->barrier();
  reduce(terms);
  int users = 0;
  timed(terms.flags, [&] {
    for (uint32_t i = 0; i < count; ++i)
      users += payload.flag_count(i);
    for (const Word word : {Word::Present, Word::Failed, Word::Joined, Word::Changed})
      users += payload.count(word);
    users += payload.all_equal(Word::Round) ? 1 : 0;
    for (size_t i = 0; i < setup_.registered.size(); ++i)
      users += payload.read_word(i).all_equal ? 1 : 0;
  });
  if (users < 0) throw DistError("a bucket came back with {} users", users);  // prevents dead-code elimination
  if (case_.placing == Placing::Copies) {
    timed(terms.copy_out, [&] {
      for (uint32_t i = 0; i < count; ++i)
        kernels::copy(own_[i], buckets_->slot(i).view);
    });
  }
  return terms;
}

// Posts the bucket and waits for it.
void MeasuredBucket::reduce(BucketTerms& terms) {
  const dist::Bucket& bucket = (*buckets_)[0];
  const dist::CollectiveOptions options{.op = dist::ReduceOp::Avg, .description = "a bucket that is measured"};
  const int64_t begin = now_ns();
  dist::WorkPtr work;
  dist::WorkPtr tail_work;
  if (!setup_.hook) {
    work = group_->all_reduce(bucket.payload.whole(), options);
  } else {
    std::vector<Tensor> parameters;
    std::vector<Tensor> gradients;
    for (const uint32_t i : bucket.layout.parameters) {
      parameters.push_back(setup_.parameters[i].tensor);
      gradients.push_back(buckets_->slot(i).view);
    }
    const dist::GradBucket seen(0, true, bucket.payload.gradients(), std::move(parameters), std::move(gradients),
                                bucket.layout.parameters);
    work = setup_.hook->run(*group_, seen, options, SourceLocation::current());
    // With a hook, flags and words are reduced in a call of their own.
    tail_work = group_->all_reduce(bucket.payload.tail(), options);
  }
  int64_t launched = now_ns();
  work->wait();
  if (tail_work) tail_work->wait();
  const int64_t end = now_ns();
  // The last rank to call does its share of the reduction inside the call. The other ranks wait for it, and that
  // wait is not a cost of the bucket.
  const int64_t arrived = std::clamp(work->times().arrived, begin, end);
  const bool known = work->times().arrived > 0;
  if (known) launched = std::min(launched, arrived);
  terms.launch = static_cast<double>(launched - begin) * 1e-3;
  terms.reduce = static_cast<double>(end - (known ? std::max(launched, arrived) : launched)) * 1e-3;
}

double MeasuredBucket::backward_us(nn::Module& module, const std::function<Tensor()>& forward) {
  module.zero_grad();
  const Tensor loss = forward();
  group_->barrier();
  const int64_t begin = now_ns();
  loss.backward();
  return us_since(begin);
}

double MeasuredBucket::together() {
  const Tensor x = zeros({1}, case_.dtype);
  double without = 0;
  {
    const autograd::Tape::Pause pause;  // the tape belongs to the wrapped module
    without = backward_us(*plain_, [&] { return plain_(x); });
  }
  const double with = backward_us(*wrapped_, [&] { return ddp_(x); });
  const dist::RoundEvents& round = ddp_.timeline().rounds().back();
  const dist::BucketEvents& bucket = round.buckets.front();
  const bool known = bucket.arrived > 0 && bucket.reduced > 0;
  reduce_in_backward_ =
      known ? static_cast<double>(bucket.reduced - bucket.arrived) * 1e-3 : std::numeric_limits<double>::quiet_NaN();
  rest_in_backward_ = static_cast<double>(round.ended - (known ? bucket.reduced : bucket.finished)) * 1e-3;
  return with - without;
}

}  // namespace brigade::lab::bench
