// PowerSGD: each gradient matrix M (n x m) is approximated by P Q^T with few columns, and only P
// and Q are averaged.
//
// One round per bucket: M += error; P = M Q; average P; make its columns orthonormal; Q = M^T P;
// average Q; M' = P Q^T is what all ranks take as the mean, and error = M - M' is kept for the next
// round (error feedback). Q starts from random numbers that are the same on all ranks, and is kept
// between rounds (warm start). Gradients with one dimension, and matrices that would not shrink,
// are averaged as they are.
#include <brigade/core/factory.h>
#include <brigade/core/random.h>
#include <brigade/core/view.h>
#include <brigade/dist/reducer/comm_hook.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/matmul.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace brigade::dist {

namespace {

// What is kept for a bucket.
struct Feedback {
  Tensor error;           // of the whole buffer
  std::vector<Tensor> q;  // of each compressed gradient
};

struct Compressed {
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

// Gram-Schmidt on the columns of a contiguous n x r matrix, twice each: what one pass leaves of a
// column that depends on those before it is not orthogonal to them (Kahan's "twice is enough").
// Columns that vanish become zero. On the host: the matrix is small, and each column needs the sums
// over those before it.
void orthogonalize(const Tensor& matrix) {
  if (matrix.device() != Device()) {
    const Tensor on_host = detail::on_host(matrix);
    orthogonalize(on_host);
    kernels::copy(matrix, on_host);
    return;
  }
  const int64_t n = matrix.size(0);
  const int64_t r = matrix.size(1);
  visit_floating(matrix.dtype(), "orthogonalize", [&]<class T>() {
    T* data = static_cast<T*>(matrix.raw_data());
    const auto at = [&](int64_t i, int64_t j) {
      return static_cast<double>(static_cast<compute_type<T>>(data[i * r + j]));
    };
    const auto put = [&](int64_t i, int64_t j, double value) {
      data[i * r + j] = static_cast<T>(static_cast<compute_type<T>>(value));
    };
    for (int64_t j = 0; j < r; ++j) {
      // The second pass has hardly anything to take off, unless rounding is all that the first one
      // left.
      for (const double least : {1e-30, 1e-3}) {
        for (int64_t k = 0; k < j; ++k) {
          double dot = 0;
          for (int64_t i = 0; i < n; ++i)
            dot += at(i, j) * at(i, k);
          for (int64_t i = 0; i < n; ++i)
            put(i, j, at(i, j) - dot * at(i, k));
        }
        double norm = 0;
        for (int64_t i = 0; i < n; ++i)
          norm += at(i, j) * at(i, j);
        norm = std::sqrt(norm);
        for (int64_t i = 0; i < n; ++i)
          put(i, j, norm > least ? at(i, j) / norm : 0);
      }
    }
  });
}

class PowerSgdHook final : public CommHook {
 public:
  explicit PowerSgdHook(const PowerSGDOptions& options) : options_(options) {}
  std::string name() const override { return "powersgd"; }

  bool begin_round(uint64_t round) override {
    round_ = round;
    return true;
  }
  void on_rebuild() override { feedback_.clear(); }

  WorkPtr run(ProcessGroup& group, const GradBucket& bucket, const CollectiveOptions& options,
              SourceLocation where) override {
    if (round_ < options_.start_powersgd_iter) return group.all_reduce(bucket.buffer(), options, where);
    Feedback& feedback = feedback_[bucket.index()];
    if (options_.use_error_feedback) {
      if (!feedback.error.defined() || feedback.error.numel() != bucket.buffer().numel()) {
        feedback.error = brigade::full(bucket.buffer().sizes(), 0.0, bucket.buffer().options());
      } else if (feedback.error.device() != bucket.buffer().device()) {  // loaded from a checkpoint
        const Tensor there = empty_like(bucket.buffer());
        kernels::copy(there, feedback.error);
        feedback.error = there;
      }
      kernels::add_inplace(bucket.buffer(), feedback.error, 1.0);
      kernels::copy(feedback.error, bucket.buffer());  // M; M' is taken off when it is known
    }
    auto round = std::make_shared<Compression>(prepare(group, bucket, feedback));
    for (const Compressed& each : round->matrices)
      kernels::copy(each.p, kernels::matmul(each.m, each.q, {}));
    if (round->plain.defined()) round->plain_sent = group.all_reduce(round->plain, options, where);
    if (!round->matrices.empty()) round->p_sent = group.all_reduce(round->all_p, options, where);
    const std::string description(options.description);
    return then(nullptr, [this, round, &group, bucket, op = options.op, iteration = options.iteration, description,
                          where] { finish(group, *round, bucket, op, iteration, description, where); });
  }

  std::vector<std::pair<std::string, Tensor>> state_dict() const override {
    std::vector<std::pair<std::string, Tensor>> state;
    for (const auto& [index, feedback] : feedback_) {
      if (feedback.error.defined()) state.emplace_back(fmt::format("{}.error", index), feedback.error);
      for (size_t i = 0; i < feedback.q.size(); ++i)
        state.emplace_back(fmt::format("{}.q.{}", index, i), feedback.q[i]);
    }
    return state;
  }

  void load_state_dict(const std::vector<std::pair<std::string, Tensor>>& state) override {
    std::map<size_t, Feedback> loaded;
    for (const auto& [key, tensor] : state) {
      char* end = nullptr;
      const size_t index = std::strtoul(key.c_str(), &end, 10);
      const std::string rest(end);
      if (rest == ".error") {
        loaded[index].error = kernels::clone(tensor);
      } else if (rest.starts_with(".q.") && std::strtoul(rest.c_str() + 3, nullptr, 10) == loaded[index].q.size()) {
        loaded[index].q.push_back(kernels::clone(tensor));
      } else {
        throw ValueError("powersgd: the state has an entry '{}' that does not belong there", key);
      }
    }
    feedback_ = std::move(loaded);
  }

 private:
  bool shrinks(int64_t n, int64_t m) const {
    const double small = static_cast<double>((n + m) * columns(n, m)) * options_.min_compression_rate;
    return small < static_cast<double>(n * m);
  }
  int64_t columns(int64_t n, int64_t m) const { return std::min<int64_t>({options_.matrix_approximation_rank, n, m}); }

  Compression prepare(ProcessGroup& group, const GradBucket& bucket, Feedback& feedback) {
    Compression round;
    int64_t p_numel = 0;
    int64_t q_numel = 0;
    int64_t plain_numel = 0;
    std::vector<Tensor> matrices;
    for (const Tensor& gradient : bucket.gradients()) {
      const int64_t n = gradient.dim() > 1 ? gradient.size(0) : 0;
      const int64_t m = n > 0 ? gradient.numel() / n : 0;
      if (n == 0 || m == 0 || !shrinks(n, m)) {
        round.uncompressed.push_back(gradient);
        plain_numel += gradient.numel();
        continue;
      }
      matrices.push_back(view::as_strided(gradient, {n, m}, {m, 1}, gradient.storage_offset()));
      p_numel += n * columns(n, m);
      q_numel += m * columns(n, m);
    }
    const DType dtype = bucket.buffer().dtype();
    if (plain_numel > 0) {
      round.plain = group.allocate(plain_numel, dtype, bucket.buffer().device());
      int64_t at = 0;
      for (const Tensor& gradient : round.uncompressed) {
        kernels::copy(view::as_strided(round.plain, gradient.sizes(), contiguous_strides(gradient.sizes()), at),
                      gradient);
        at += gradient.numel();
      }
    }
    if (matrices.empty()) return round;
    round.all_p = group.allocate(p_numel, dtype, bucket.buffer().device());
    round.all_q = group.allocate(q_numel, dtype, bucket.buffer().device());
    int64_t p_at = 0;
    int64_t q_at = 0;
    const bool warm = options_.warm_start && feedback.q.size() == matrices.size();
    // Cold: the same numbers on every rank.
    Generator generator(options_.seed + 7919 * bucket.index() + (options_.warm_start ? 0 : 104729 * round_));
    for (size_t i = 0; i < matrices.size(); ++i) {
      const int64_t n = matrices[i].size(0);
      const int64_t m = matrices[i].size(1);
      const int64_t r = columns(n, m);
      Compressed each;
      each.m = matrices[i];
      each.p = view::as_strided(round.all_p, {n, r}, {r, 1}, p_at);
      each.q = view::as_strided(round.all_q, {m, r}, {r, 1}, q_at);
      p_at += n * r;
      q_at += m * r;
      if (warm) {
        kernels::copy(each.q, feedback.q[i]);
      } else {
        kernels::copy(each.q, brigade::randn({m, r}, kFloat32, &generator));
      }
      orthogonalize(each.q);
      round.matrices.push_back(std::move(each));
    }
    return round;
  }

  void finish(ProcessGroup& group, Compression& round, const GradBucket& bucket, ReduceOp op, uint64_t iteration,
              const std::string& description, SourceLocation where) {
    if (round.plain_sent) {
      round.plain_sent->wait();
      int64_t at = 0;
      for (const Tensor& gradient : round.uncompressed) {
        kernels::copy(gradient,
                      view::as_strided(round.plain, gradient.sizes(), contiguous_strides(gradient.sizes()), at));
        at += gradient.numel();
      }
    }
    if (round.p_sent) {
      round.p_sent->wait();
      for (const Compressed& each : round.matrices) {
        orthogonalize(each.p);
        kernels::copy(each.q, kernels::matmul(each.m, each.p, {.transpose_a = true}));
      }
      group.all_reduce(round.all_q, {.op = op, .description = description, .iteration = iteration}, where)->wait();
      Feedback& feedback = feedback_[bucket.index()];
      feedback.q.clear();
      for (const Compressed& each : round.matrices) {
        kernels::copy(each.m, kernels::matmul(each.p, each.q, {.transpose_b = true}));
        feedback.q.push_back(kernels::clone(each.q));
      }
    }
    if (!options_.use_error_feedback) return;
    // error = M - M'. Where nothing was compressed the mean was exact, and no error remains.
    Feedback& feedback = feedback_[bucket.index()];
    kernels::add_inplace(feedback.error, bucket.buffer(), -1.0);
    for (const Tensor& gradient : round.uncompressed) {
      kernels::fill(view::as_strided(feedback.error, gradient.sizes(), contiguous_strides(gradient.sizes()),
                                     gradient.storage_offset() - bucket.buffer().storage_offset()),
                    0.0);
    }
  }

  PowerSGDOptions options_;
  uint64_t round_ = 0;
  std::map<size_t, Feedback> feedback_;
};

}  // namespace

CommHookPtr powersgd_hook(const PowerSGDOptions& options) {
  if (options.matrix_approximation_rank < 1) {
    throw ValueError("powersgd_hook: matrix_approximation_rank must be at least 1, got {}",
                     options.matrix_approximation_rank);
  }
  if (options.start_powersgd_iter < 2) {
    throw ValueError(
        "powersgd_hook: start_powersgd_iter must be at least 2 (buckets are rebuilt after the first backward), got {}",
        options.start_powersgd_iter);
  }
  return std::make_shared<PowerSgdHook>(options);
}

}  // namespace brigade::dist
