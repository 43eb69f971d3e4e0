// PowerSGD: each gradient matrix M (n x m) is approximated by P Q^T with few columns, and only P
// and Q are averaged.
//
// One round per bucket: M += error; P = M Q; average P; make its columns orthonormal; Q = M^T P;
// average Q; M' = P Q^T is what all ranks take as the mean, and error = M - M' is kept for the next
// round (error feedback). Q starts from random numbers that are the same on all ranks, and is kept
// between rounds (warm start). Gradients with one dimension, and matrices that would not shrink,
// are averaged as they are.
//
// Error and Q are kept by parameter, and sums over ranks do not depend on where in a buffer a
// number lies: the buckets may be rebuilt at any time, and a resumed program may begin with other
// buckets.
#include <brigade/core/device_runtime.h>
#include <brigade/core/factory.h>
#include <brigade/core/random.h>
#include <brigade/core/view.h>
#include <brigade/dist/comm_hooks/comm_hook.h>
#include <brigade/dist/comm_hooks/iteration.h>
#include <brigade/dist/groups/group_memory.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/matmul.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

namespace brigade::dist {
namespace {

// The state of a compressed gradient, n x m.
struct Feedback {
  Tensor error;  // n x m
  Tensor q;      // m x r
  Tensor fresh;  // m x r: random replacements for columns of q that vanish
};

struct Compressed {
  uint32_t parameter = 0;
  Tensor m;  // view of the bucket, n x m
  Tensor p;  // n x r, view of the sent buffer
  Tensor q;  // m x r, view of the sent buffer
};

struct Compression {
  Tensor all_p, all_q, plain;
  std::vector<Compressed> matrices;
  std::vector<Tensor> uncompressed;
  WorkPtr p_sent, plain_sent;
};

// A view of `flat` at element `at`, in the shape of the gradient.
Tensor slot(const Tensor& flat, const Tensor& gradient, int64_t at) {
  return view::as_strided(flat, gradient.sizes(), contiguous_strides(gradient.sizes()), at);
}

class PowerSgdHook final : public CommHook {
 public:
  explicit PowerSgdHook(const PowerSGDOptions& options) : options_(options) {}
  std::string name() const override { return "powersgd"; }
  bool is_approximate() const override { return true; }

  WorkPtr run(ProcessGroup& group, const GradBucket& bucket, const CollectiveOptions& options,
              SourceLocation where) override {
    const uint64_t iteration = iteration_;
    check_may_be_captured(bucket, iteration, where);
    if (bucket.is_last()) ++iteration_;
    if (iteration < options_.start_powersgd_iter) return group.all_reduce(bucket.buffer(), options, where);
    auto round = std::make_shared<Compression>(prepare(group, bucket, iteration));
    for (const Compressed& each : round->matrices) {
      if (options_.use_error_feedback) add_error(each);
      kernels::copy(each.p, kernels::matmul(each.m, each.q, {}));
    }
    if (round->plain.defined()) round->plain_sent = group.all_reduce(round->plain, options, where);
    if (!round->matrices.empty()) round->p_sent = group.all_reduce(round->all_p, options, where);
    return then(nullptr, [this, round, &group, op = options.op, number = options.iteration, topic = options.topic,
                          where] { finish(group, *round, op, number, topic, where); });
  }

  std::vector<std::pair<std::string, Tensor>> state_dict() const override {
    std::vector<std::pair<std::string, Tensor>> state{iteration_entry(iteration_)};
    for (const auto& [parameter, feedback] : feedback_) {
      if (feedback.error.defined())
        state.emplace_back(fmt::format("{}.error", parameter), kernels::clone(feedback.error));
      if (feedback.q.defined()) state.emplace_back(fmt::format("{}.q", parameter), kernels::clone(feedback.q));
    }
    return state;
  }

  void load_state_dict(const std::vector<std::pair<std::string, Tensor>>& state) override {
    const uint64_t iteration = iteration_in(state, name());
    std::map<uint32_t, Feedback> loaded;
    for (const auto& [key, tensor] : state) {
      if (key == kIterationKey) continue;
      uint32_t parameter = 0;
      const char* const end = key.data() + key.size();
      const auto [rest, error] = std::from_chars(key.data(), end, parameter);
      const std::string what(rest, end);
      if (error != std::errc() || (what != ".error" && what != ".q"))
        throw ValueError("powersgd: the state has an entry '{}' that does not belong there", key);
      if (!tensor.defined() || tensor.dim() != 2 || !is_floating_point(tensor.dtype())) {
        throw ValueError("powersgd: '{}' of the state is {}, expected a floating matrix", key,
                         tensor.defined() ? describe(tensor) : "undefined");
      }
      Feedback& feedback = loaded[parameter];
      (what == ".q" ? feedback.q : feedback.error) = kernels::clone(tensor);
    }
    feedback_ = std::move(loaded);
    iteration_ = iteration;
  }

 private:
  bool shrinks(int64_t n, int64_t m) const {
    const double small = static_cast<double>((n + m) * columns(n, m)) * options_.min_compression_rate;
    return small < static_cast<double>(n * m);
  }
  int64_t columns(int64_t n, int64_t m) const { return std::min<int64_t>({options_.matrix_approximation_rank, n, m}); }

  // Rejects a capture that starts too early: replays would repeat the plain averages at the start, or the first
  // round, which creates Q and error.
  void check_may_be_captured(const GradBucket& bucket, uint64_t iteration, SourceLocation where) const {
    const Device device = bucket.buffer().device();
    if (iteration > options_.start_powersgd_iter || device == Device()) return;
    if (!device_runtime(device).is_capturing(device.index)) return;
    throw ValueError(
        where,
        "powersgd: this is reduced backward {}, and compression begins with number {}: a graph would repeat how "
        "it begins. Capture a later one",
        iteration + 1, options_.start_powersgd_iter + 1);
  }

  // Checks kept state, which may come from a checkpoint, against `like`, and moves it to that device. Throws
  // ValueError if it does not fit.
  static void check_kept(Tensor& kept, const Tensor& like, uint32_t parameter, const char* what) {
    if (kept.sizes() != like.sizes() || kept.dtype() != like.dtype()) {
      throw ValueError(
          "powersgd: the loaded '{}.{}' is {}, but the gradient of parameter {} needs {}; load the state into a hook "
          "of the same options, over the same model",
          parameter, what, describe(kept), parameter, describe(like));
    }
    if (kept.device() == like.device()) return;
    const Tensor there = empty_like(like);
    kernels::copy(there, kept);
    kept = there;
  }

  // M += error. Keeps M as the error until M' is known and subtracted.
  void add_error(const Compressed& each) {
    Tensor& error = feedback_[each.parameter].error;
    if (!error.defined()) {
      error = kernels::clone(each.m);
      return;
    }
    check_kept(error, each.m, each.parameter, "error");
    kernels::add_inplace(each.m, error, 1.0);
    kernels::copy(error, each.m);
  }

  // Makes Q orthonormal. Q starts from that of the last round, or from random numbers, the same on every rank, if
  // there is none. A column that has vanished (a gradient of zeros, or of low rank) restarts from random numbers too:
  // otherwise it would stay zero.
  void begin_q(const Compressed& each, uint64_t iteration) {
    const auto random = [&](uint64_t seed) {
      RandomGenerator generator(options_.seed + 7919 * uint64_t{each.parameter} + seed);
      const Tensor numbers = empty_like(each.q);
      kernels::copy(numbers, brigade::randn({each.q.size(0), each.q.size(1)}, kFloat32, &generator));
      return numbers;
    };
    if (!options_.warm_start) {
      kernels::copy(each.q, random(104729 * (iteration + 1)));
      return kernels::orthogonalize(each.q, Tensor());
    }
    Feedback& feedback = feedback_[each.parameter];
    if (!feedback.fresh.defined()) feedback.fresh = random(0);
    if (feedback.q.defined()) check_kept(feedback.q, each.q, each.parameter, "q");
    kernels::copy(each.q, feedback.q.defined() ? feedback.q : feedback.fresh);
    kernels::orthogonalize(each.q, feedback.fresh);
  }

  Compression prepare(ProcessGroup& group, const GradBucket& bucket, uint64_t iteration) {
    Compression round;
    int64_t p_numel = 0;
    int64_t q_numel = 0;
    int64_t plain_numel = 0;
    for (size_t i = 0; i < bucket.gradients().size(); ++i) {
      const Tensor& gradient = bucket.gradients()[i];
      const int64_t n = gradient.dim() > 1 ? gradient.size(0) : 0;
      const int64_t m = n > 0 ? gradient.numel() / n : 0;
      if (n == 0 || m == 0 || !shrinks(n, m)) {
        round.uncompressed.push_back(gradient);
        plain_numel += gradient.numel();
        continue;
      }
      Compressed& each = round.matrices.emplace_back();
      each.parameter = bucket.parameter_indices()[i];
      each.m = view::as_strided(gradient, {n, m}, {m, 1}, gradient.storage_offset());
      p_numel += n * columns(n, m);
      q_numel += m * columns(n, m);
    }
    const DType dtype = bucket.buffer().dtype();
    if (plain_numel > 0) {
      round.plain = room_to_exchange(group, plain_numel, dtype, bucket.buffer().device());
      int64_t at = 0;
      for (const Tensor& gradient : round.uncompressed) {
        kernels::copy(slot(round.plain, gradient, at), gradient);
        at += gradient.numel();
      }
    }
    if (round.matrices.empty()) return round;
    round.all_p = room_to_exchange(group, p_numel, dtype, bucket.buffer().device());
    round.all_q = room_to_exchange(group, q_numel, dtype, bucket.buffer().device());
    int64_t p_at = 0;
    int64_t q_at = 0;
    for (Compressed& each : round.matrices) {
      const int64_t n = each.m.size(0);
      const int64_t m = each.m.size(1);
      const int64_t r = columns(n, m);
      each.p = view::as_strided(round.all_p, {n, r}, {r, 1}, p_at);
      each.q = view::as_strided(round.all_q, {m, r}, {r, 1}, q_at);
      p_at += n * r;
      q_at += m * r;
      begin_q(each, iteration);
    }
    return round;
  }

  void finish(ProcessGroup& group, Compression& round, ReduceOp op, uint64_t number, const Topic& topic,
              SourceLocation where) {
    if (round.plain_sent) {
      round.plain_sent->wait();
      int64_t at = 0;
      for (const Tensor& gradient : round.uncompressed) {
        kernels::copy(gradient, slot(round.plain, gradient, at));
        at += gradient.numel();
      }
    }
    if (!round.p_sent) return;
    round.p_sent->wait();
    for (const Compressed& each : round.matrices) {
      kernels::orthogonalize(each.p, Tensor());
      kernels::copy(each.q, kernels::matmul(each.m, each.p, {.transpose_a = true}));
    }
    group.all_reduce(round.all_q, {.op = op, .topic = topic, .iteration = number}, where)->wait();
    for (const Compressed& each : round.matrices) {
      kernels::copy(each.m, kernels::matmul(each.p, each.q, {.transpose_b = true}));
      Feedback& feedback = feedback_[each.parameter];
      // In place if it exists, since captured rounds read it.
      if (options_.warm_start && feedback.q.defined()) {
        kernels::copy(feedback.q, each.q);
      } else if (options_.warm_start) {
        feedback.q = kernels::clone(each.q);
      }
      if (options_.use_error_feedback) kernels::add_inplace(feedback.error, each.m, -1.0);  // error = M - M'
    }
  }

  PowerSGDOptions options_;
  uint64_t iteration_ = 0;                 // reduced backwards so far
  std::map<uint32_t, Feedback> feedback_;  // by the parameter's index
};

}  // namespace

CommHookPtr powersgd_hook(const PowerSGDOptions& options) {
  if (options.matrix_approximation_rank < 1) {
    throw ValueError("powersgd_hook: matrix_approximation_rank must be at least 1, got {}",
                     options.matrix_approximation_rank);
  }
  if ((options.use_error_feedback || options.warm_start) && options.start_powersgd_iter < 2) {
    throw ValueError(
        "powersgd_hook: start_powersgd_iter must be at least 2 with use_error_feedback or warm_start, as in PyTorch, "
        "got {}",
        options.start_powersgd_iter);
  }
  if (!(options.min_compression_rate > 0 && std::isfinite(options.min_compression_rate))) {
    throw ValueError(
        "powersgd_hook: min_compression_rate must be a finite number above 0, got {}; a matrix is compressed where that "
        "saves more than this factor",
        options.min_compression_rate);
  }
  return std::make_shared<PowerSgdHook>(options);
}

}  // namespace brigade::dist
