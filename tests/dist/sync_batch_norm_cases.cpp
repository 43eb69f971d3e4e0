#include "rank_case.h"

#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/ddp/sync_batch_norm.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

#include <cmath>
#include <optional>

namespace brigade::test::sync_batch_norm_cases {
// Rank 1 has no rows; the other ranks have different numbers of rows.
int64_t rows_of(int rank) { return rank == 1 ? 0 : 2 + rank; }
int64_t all_rows(int ranks) {
  int64_t rows = 0;
  for (int r = 0; r < ranks; ++r)
    rows += rows_of(r);
  return rows;
}

Tensor random(const Shape& sizes, uint64_t seed) {
  RandomGenerator generator(seed);
  return randn(sizes, kFloat64, &generator);
}

// [rows, 3, ...] of a rank, with a mean far from 0: a sum of squares would lose the variance.
Tensor batch_of(int rank, const Shape& rest, uint64_t seed, std::optional<int64_t> rows = {}) {
  Shape sizes{rows.value_or(rows_of(rank)), 3};
  for (const int64_t size : rest)
    sizes.push_back(size);
  return random(sizes, seed + 10 * static_cast<uint64_t>(rank)) * (1.0 + rank) + 1e4;
}

std::string compare(const std::string& what, const Tensor& found, const Tensor& expected, double tolerance = 1e-10) {
  if (found.sizes() != expected.sizes())
    return what + " is " + to_string(found.sizes()) + ", expected " + to_string(expected.sizes());
  const auto a = found.to_vector<double>();
  const auto b = expected.to_vector<double>();
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(std::abs(a[i] - b[i]) <= tolerance * std::max(1.0, std::abs(b[i]))))
      return fmt::format("{} {} is {}, expected {}", what, i, a[i], b[i]);
  }
  return "";
}

// Gives a layer random weights and biases.
template <class Norm>
void randomise(Norm& norm) {
  const NoGradGuard no_grad;
  if (!norm->weight.defined()) return;
  norm->weight.copy_(random({3}, 1) + 2.0);
  norm->bias.copy_(random({3}, 2));
}

// Compares two forwards and backwards of one layer over all ranks with one process.
template <class Norm>
std::string same_as_whole(const dist::ProcessGroupPtr& group, const nn::BatchNormOptions& options, const Shape& rest) {
  const int ranks = group->size();
  Norm whole(3, options);
  Norm norm(3, options);
  randomise(whole);
  randomise(norm);
  const Tensor weight = norm->weight, running_mean = norm->running_mean;
  if (dist::convert_sync_batchnorm(norm, group) != 1) return "number of layers";
  if (!norm->weight.is_same(weight) && weight.defined()) return "another parameter";
  if (!norm->running_mean.is_same(running_mean) && running_mean.defined()) return "another buffer";
  for (uint64_t step = 0; step < 2; ++step) {
    std::vector<Tensor> parts, weights;
    for (int r = 0; r < ranks; ++r) {
      parts.push_back(batch_of(r, rest, 100 * step));
      weights.push_back(batch_of(r, rest, 100 * step + 7) - 1e4);
    }
    const auto mine = static_cast<size_t>(group->rank());
    const Tensor all = cat(parts).requires_grad_();
    const Tensor x = parts[mine].detach().requires_grad_();
    whole->zero_grad();
    norm->zero_grad();
    const Tensor expected = whole(all);
    const Tensor y = norm(x);
    (expected * cat(weights)).sum().backward();
    (y * weights[mine]).sum().backward();
    int64_t begin = 0;
    for (int r = 0; r < group->rank(); ++r)
      begin += rows_of(r);
    std::vector<std::string> wrong{
        compare("y", y.detach(), expected.detach().narrow(0, begin, rows_of(group->rank())), 1e-9),
        compare("dx", x.grad(), all.grad().narrow(0, begin, rows_of(group->rank())))};
    for (size_t p = 0; p < norm->parameters().size(); ++p) {
      // The parts of the ranks add up.
      const Tensor grad = norm->parameters()[p].grad().clone();
      group->all_reduce(grad)->wait();
      wrong.push_back(compare("the gradient of a parameter", grad, whole->parameters()[p].grad(), 1e-9));
    }
    for (size_t b = 0; b < norm->buffers().size(); ++b)
      wrong.push_back(compare("buffer", norm->buffers()[b], whole->buffers()[b]));
    // All ranks hold the same bits, or they would drift apart.
    const auto bits = group->all_gather_text(bits_of(norm->buffers()));
    for (const std::string& each : bits) {
      if (each != bits[0]) wrong.emplace_back("the running statistics of the ranks differ");
    }
    for (const std::string& each : wrong) {
      if (!each.empty()) return fmt::format("step {}: {}", step, each);
    }
  }
  return "";
}

// A convolution and a hidden layer, with batch norm after each, and a head.
struct ConvNetImpl : nn::Module {
  nn::Conv2d first{nullptr};
  nn::BatchNorm2d norm{nullptr};
  nn::Linear hidden{nullptr};
  nn::BatchNorm1d norm1d{nullptr};
  nn::Linear last{nullptr};
  ConvNetImpl() {
    first = register_module("first", nn::Conv2d(2, 4, 3));
    norm = register_module("norm", nn::BatchNorm2d(4));
    hidden = register_module("hidden", nn::Linear(16, 5));
    norm1d = register_module("norm1d", nn::BatchNorm1d(5));
    last = register_module("last", nn::Linear(5, 2));
    to(kFloat64);
  }
  Tensor forward(const Tensor& x) { return last(relu(norm1d(hidden(relu(norm(first(x))).flatten(1))))); }
};
BRIGADE_MODULE(ConvNet);

std::string check_sync_statistics(const dist::ProcessGroupPtr& group) {
  for (const bool affine : {true, false}) {
    for (const std::optional<double> momentum : {std::optional<double>(0.3), std::optional<double>()}) {
      const nn::BatchNormOptions options{
          .momentum = momentum, .affine = affine, .track_running_stats = affine, .dtype = kFloat64};
      for (const std::string& wrong :
           {same_as_whole<nn::BatchNorm1d>(group, options, {}), same_as_whole<nn::BatchNorm1d>(group, options, {2}),
            same_as_whole<nn::BatchNorm2d>(group, options, {2, 3})}) {
        if (!wrong.empty()) return wrong;
      }
    }
  }
  return "";
}
const AddRankCase add_sync_statistics(
    "SyncBatchNorm equals BatchNorm on the whole batch, with unequal and empty batches", &check_sync_statistics);

void check_sync_training(const std::string& backend, int ranks) {
  constexpr int kSteps = 5;
  const auto images = [](int rank, int step) {
    return random({rows_of(rank), 2, 4, 4}, 40 + static_cast<uint64_t>(rank) + 100 * static_cast<uint64_t>(step));
  };
  // The mean over the rows of all ranks; a wrapper divides by the number of ranks.
  const auto loss_of = [ranks](const Tensor& y, double scale) {
    return square(y - 1.0).sum() * (scale / static_cast<double>(all_rows(ranks)));
  };
  manual_seed(5);
  ConvNet whole;
  optim::SGD plain(whole->parameters(), {.lr = 0.05, .momentum = 0.9});
  for (int s = 0; s < kSteps; ++s) {
    std::vector<Tensor> parts;
    for (int r = 0; r < ranks; ++r)
      parts.push_back(images(r, s));
    plain.zero_grad();
    loss_of(whole(cat(parts)), 1).backward();
    plain.step();
  }
  const auto expected = whole->state_dict();
  for (const double bucket_mb : {25.0, 1e-4}) {  // the sums of backward meet one bucket, or several
    expect_well(backend, ranks, [&](const dist::ProcessGroupPtr& group) -> std::string {
      manual_seed(5);
      ConvNet net;
      if (dist::convert_sync_batchnorm(net, group) != 2) return "number of layers";
      dist::DistributedDataParallel<ConvNet> ddp(net, group,
                                                 {.bucket_cap_mb = bucket_mb, .first_bucket_mb = bucket_mb});
      optim::SGD optimizer(net->parameters(), {.lr = 0.05, .momentum = 0.9});
      for (int s = 0; s < kSteps; ++s) {
        optimizer.zero_grad();
        loss_of(ddp(images(group->rank(), s)), ranks).backward();
        optimizer.step();
      }
      const auto state = net->state_dict();
      for (size_t i = 0; i < state.size(); ++i) {
        const std::string wrong = compare(state[i].first, state[i].second, expected[i].second);
        if (!wrong.empty()) return wrong;
      }
      return "";
    });
  }
}
const AddRankCase add_sync_training(
    "SyncBatchNorm in a network: five steps equal those of one process on the whole batch", &check_sync_training);

void check_sync_refusals(const std::string& backend, int ranks) {
  // The layer, and what it refuses; the ranks stay in step.
  expect_well(backend, ranks, [ranks](const dist::ProcessGroupPtr& group) -> std::string {
    dist::SyncBatchNorm norm(3, group, {.dtype = kFloat64});
    const int64_t one = group->rank() == 0 ? 1 : 0;
    std::vector<std::string> wrong{
        // One value on all ranks together.
        expect_error<ValueError>(
            [&] {
              norm(ones({one, 3}, kFloat64));
            },
            {"Expected more than 1 value per channel when training, got 1 on all", "sync_batch_norm_cases.cpp:"}),
        expect_error<ShapeError>([&] { norm(ones({3}, kFloat64)); }, {"expected at least 2D input (got 1D input [3])"}),
        expect_error<ShapeError>(
            [&] {
              norm(ones({4, 5}, kFloat64));
            },
            {"weight must be [5]", "got float64 [3]"}),
        expect_error<ValueError>([&] { dist::convert_sync_batchnorm(norm, nullptr); }, {"the process group is empty"})};
    if (norm->num_batches_tracked.item<int64_t>() != 0 || norm->running_mean.to_vector<double>()[0] != 0)
      wrong.emplace_back("a refused batch counted");
    // One row on each rank is enough together, and one on a single channel plane as well.
    const Tensor y = norm(full({1, 3}, group->rank(), kFloat64));
    const double variance = (static_cast<double>(ranks) * ranks - 1) / 12;
    const double expected = (group->rank() - (ranks - 1) / 2.0) / std::sqrt(variance + 1e-5);
    wrong.push_back(compare("y", y.detach(), full({1, 3}, expected, kFloat64)));
    // Evaluation needs no other rank.
    norm->eval();
    if (group->rank() == 0) norm(ones({2, 3, 2, 2}, kFloat64));
    group->barrier();
    for (const std::string& each : wrong) {
      if (!each.empty()) return each;
    }
    return "";
  });
  // A rank that is elsewhere: the error names the layer.
  const auto outcome = run_ranks(backend, ranks, [](const dist::ProcessGroupPtr& group) -> std::string {
    struct NetImpl : nn::Module {
      nn::Sequential features{nullptr};
      NetImpl() { features = register_module("features", nn::Sequential(nn::Linear(4, 3), nn::BatchNorm1d(3))); }
    } net;
    dist::convert_sync_batchnorm(net, group);
    const Tensor x = net.features(random({2, 4}, 3).to(kFloat32));
    if (group->rank() == 0) group->all_reduce(ones({3}), {.description = "something else"})->wait();
    x.sum().backward();
    return "";
  });
  for (const Rank& rank : outcome) {
    CHECK(rank.error != "");
    CHECK_MESSAGE(rank.text.find("gradient sums of SyncBatchNorm `features.1`") != std::string::npos, rank.text);
    CHECK(rank.text.find("something else") != std::string::npos);
  }
}
const AddRankCase add_sync_refusals("SyncBatchNorm: too few values, evaluation alone, a rank that is elsewhere",
                                    &check_sync_refusals);

}  // namespace brigade::test::sync_batch_norm_cases
