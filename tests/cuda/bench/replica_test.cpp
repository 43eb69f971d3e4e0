// Replicas of `brigade bench ddp --device cuda`: steps on a device match those on the CPU, and a step replayed as a
// graph gives the same bits as the eager step.
#include <on_gpus.h>

#include <brigade/autograd/functional.h>
#include <brigade/core/error.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/bench/ddp/replica.h>

#include <cmath>
#include <string>
#include <vector>

namespace brigade::test::replica_test {
using namespace brigade::lab::bench;

namespace {

using Values = std::vector<std::vector<float>>;

const Workload& small() {
  static const Workload workload{"small", "8-16-3, batch 6",
                                 [] {
                                   Network network;
                                   auto net =
                                       network->inner(nn::Sequential(nn::Linear(8, 16), nn::ReLU(), nn::Linear(16, 3)));
                                   network->run = [net](const Tensor& x) mutable { return net(x); };
                                   return network;
                                 },
                                 [](uint64_t seed) {
                                   RandomGenerator generator(seed);
                                   const Tensor x = randn({6, 8}, kFloat32, &generator);
                                   return Batch{x, randint(0, 3, {6}, {kInt64}, &generator)};
                                 },
                                 [](const Tensor& y, const Tensor& target) { return cross_entropy(y, target) * 1000; }};
  return workload;
}

// The parameters of each rank after seven steps in that mode.
std::vector<Values> trained(int ranks, const std::string& mode, DeviceType type) {
  std::vector<Values> all(static_cast<size_t>(ranks));
  const auto train = [&](const dist::ProcessGroupPtr& group, Device device) {
    Replica replica(small(), find_mode(mode), group, device);
    for (int step = 0; step < 4; ++step) {
      const StepTimes times = replica.step();
      CHECK(times.step_ms > 0);
      CHECK((times.buckets > 0) == (mode == "strict" || (mode == "graph" && step < 3)));
    }
    CHECK(replica.mean_ms_of(3) > 0);
    for (const Tensor& parameter : replica.network()->parameters()) {
      CHECK(parameter.device() == device);
      all[static_cast<size_t>(group->rank())].push_back(parameter.to_vector<float>());
    }
  };
  if (type == DeviceType::CPU) {
    dist::run_threads(ranks, [&](const dist::ProcessGroupPtr& group) { train(group, Device()); });
  } else {
    on_gpus(ranks, train);
  }
  return all;
}

double largest_difference(const Values& a, const Values& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a[i].size(); ++j)
      largest = std::max(largest, std::abs(static_cast<double>(a[i][j]) - b[i][j]));
  }
  return largest;
}

}  // namespace

TEST_CASE("a replica on a device takes the steps of one on the CPU, and a graph those of the step by itself") {
  for (const int ranks : {1, 2}) {
    if (!has_gpus_for(ranks)) continue;
    CAPTURE(ranks);
    const std::vector<Values> on_cpu = trained(ranks, "strict", DeviceType::CPU);
    const std::vector<Values> strict = trained(ranks, "strict", DeviceType::CUDA);
    const std::vector<Values> graph = trained(ranks, "graph", DeviceType::CUDA);
    const std::vector<Values> local = trained(ranks, "local", DeviceType::CUDA);
    for (size_t rank = 0; rank < strict.size(); ++rank) {
      CHECK(strict[rank] == strict[0]);
      CHECK(graph[rank] == strict[rank]);
      CHECK(largest_difference(strict[rank], on_cpu[rank]) < 1e-4);
      CHECK((local[rank] == strict[rank]) == (ranks == 1));
    }
    manual_seed(1);
    Values begin;
    for (const Tensor& parameter : small().make()->parameters())
      begin.push_back(parameter.to_vector<float>());
    CHECK(largest_difference(strict[0], begin) > 1e-2);
  }
}

TEST_CASE("a graph is refused on the CPU") {
  dist::run_threads(1, [](const dist::ProcessGroupPtr& group) {
    CHECK_THROWS_WITH_AS(Replica(small(), find_mode("graph"), group), doctest::Contains("give --device cuda"),
                         ValueError);
  });
}

}  // namespace brigade::test::replica_test
