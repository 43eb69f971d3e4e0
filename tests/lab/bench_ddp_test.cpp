// brigade bench ddp: the networks match their names, each mode trains as described, and the rows follow from what the
// ranks measured.
#include <brigade/lab/bench/ddp/replica.h>
#include <brigade/lab/bench/ddp/summary.h>
#include <brigade/lab/bench/on_ranks.h>

#include <brigade/core/error.h>
#include <brigade/dist/checks/values.h>
#include <brigade/dist/groups/threads/run_threads.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>

namespace brigade::test::bench_ddp_test {
using namespace brigade::lab::bench;
using nlohmann::json;

TEST_CASE("the networks have the parameters of those that are known by their names") {
  struct Row {
    const char* name;
    size_t tensors;
    int64_t numel;
  };
  // The first five are torch_ddp_bench's; ResNet-18 is torchvision's; GPT: 65 * 384 + 128 * 384 + 6 blocks of
  // 12 * 384^2 + 13 * 384, and two vectors for the last norm.
  for (const Row& row : std::vector<Row>{{"mlp", 6, 784 * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 * 10 + 10},
                                         {"cnn", 8, 9 * 32 + 32 + 32 * 9 * 64 + 64 + 9216 * 128 + 128 + 1290},
                                         {"transformer", 53, 2 * 256'000 + 1'000 + 512 + 4 * 789'760},
                                         {"many", 400, 200 * 64 * 65},
                                         {"big", 1, 1 << 24},
                                         {"resnet18", 62, 11'689'512},
                                         {"gpt", 76, 193 * 384 + 6 * (12 * 384 * 384 + 13 * 384) + 2 * 384}}) {
    CAPTURE(row.name);
    const Network network = find_workload(row.name).make();
    const std::vector<Tensor> parameters = network->parameters();
    int64_t numel = 0;
    for (const Tensor& parameter : parameters)
      numel += parameter.numel();
    CHECK(parameters.size() == row.tensors);
    CHECK(numel == row.numel);
  }
  CHECK_THROWS_WITH_AS(find_workload("vgg"), doctest::Contains("known are mlp, cnn"), ValueError);
}

TEST_CASE("every network's loss reaches every parameter") {
  for (const Workload& workload : workloads()) {
    if (workload.name == "big" || workload.name == "gpt") continue;  // large, and nothing new
    CAPTURE(workload.name);
    Network network = workload.make();
    const Batch batch = workload.batch(3);
    const Tensor loss = workload.loss(network(batch.x), batch.target);
    loss.backward();
    CHECK(std::isfinite(loss.item<double>()));
    for (const auto& [name, parameter] : network->named_parameters()) {
      CAPTURE(name);
      CHECK(parameter.grad().defined());
    }
    CHECK(workload.batch(3).x.to(kFloat32).to_vector<float>() == batch.x.to(kFloat32).to_vector<float>());
    CHECK(workload.batch(4).x.to(kFloat32).to_vector<float>() != batch.x.to(kFloat32).to_vector<float>());
  }
}

TEST_CASE("a mode is what its name says") {
  CHECK_FALSE(find_mode("local").wrapped);
  CHECK(find_mode("find_unused").options.find_unused_parameters);
  CHECK(find_mode("static_graph").options.static_graph);
  CHECK_FALSE(find_mode("copies").options.gradient_as_bucket_view);
  CHECK(find_mode("no_sync4").micro_batches == 4);
  CHECK_FALSE(find_mode("diagnosis_off").options.diagnosis);
  CHECK(find_mode("bfloat16").dtype == kBFloat16);
  CHECK(find_mode("cap0.25").options.bucket_cap_mb == 0.25);
  CHECK(find_mode("cap0.25").options.first_bucket_mb == 0.25);
  CHECK(find_mode("cap16").options.first_bucket_mb == 1);
  CHECK(find_mode("capinf").options.first_bucket_mb == std::numeric_limits<double>::infinity());
  for (const std::string name : {"", "cap", "cap0", "cap-1", "cap4x", "capnan", "fast"}) {
    CAPTURE(name);
    CHECK_THROWS_WITH_AS(find_mode(name), doctest::Contains("find_unused"), ValueError);
  }
}

TEST_CASE("a step in each mode leaves all ranks with the same parameters, and without DDP with others") {
  for (const std::string name : {"local", "strict", "unused10", "static_graph", "copies", "no_sync4", "diagnosis_off",
                                 "fp16_compress", "bfloat16", "cap0.01"}) {
    CAPTURE(name);
    dist::run_threads(2, [&](const dist::ProcessGroupPtr& group) {
      Replica replica(find_workload("many"), find_mode(name), group);
      replica.step();
      const StepTimes times = replica.step();
      const bool alike = dist::verify_consistency(*group, replica.network()).consistent();
      CHECK(alike == (name != "local"));
      CHECK(times.step_ms > 0);
      CHECK(replica.tensors() == (name == "unused10" ? 440 : 400));
      if (name == "local") {
        CHECK(times.buckets == 0);
        CHECK(replica.ddp() == nullptr);
      } else {
        CHECK(times.shares.compute_ms > 0);
        CHECK(times.shares.on_the_way_ms > 0);
        CHECK((times.buckets > 100) == (name == "cap0.01"));
      }
    });
  }
}

TEST_CASE("a step is as long as its slowest rank, and a ratio is taken inside a round") {
  using List = std::vector<double>;
  const auto row = [](const std::string& mode, int buckets, const List& step, const List& sent, const List& hidden,
                      const List& waiting) {
    return json{{"model", "mlp"},        {"backend", "shm"},
                {"mode", mode},          {"bytes", 8},
                {"tensors", 2},          {"buckets", buckets},
                {"rounds", 3},           {"noise", 0.01},
                {"peers_known", true},   {"step_ms", step},
                {"compute_ms", step},    {"waiting_ms", waiting},
                {"reducing_ms", sent},   {"placing_ms", List(3, 0.25)},
                {"on_the_way_ms", sent}, {"hidden_ms", hidden}};
  };
  const List none(3, 0.0);
  const json first = json::array(
      {row("local", 0, {4, 10, 5}, none, none, none), row("strict", 3, {6, 12, 9}, {2, 4, 2}, {1, 1, 2}, {0, 2, 4})});
  const json second = json::array(
      {row("local", 0, {2, 6, 6}, none, none, none), row("strict", 3, {8, 11, 6}, {2, 4, 2}, {1, 0, 1}, {1, 0, 0})});
  const json found = ddp_rows(RanksRun({"shm"}, json::array({first, second})));
  REQUIRE(found.size() == 2);
  CHECK(found[0].at("step_ms").at("median") == 6.0);  // 4, 10, 6
  CHECK_FALSE(found[0].contains("overlap"));
  CHECK(found[0].at("ratios").at("strict").at("n") == 3);
  const json& strict = found[1];
  CHECK(strict.at("step_ms").at("median") == 9.0);  // 8, 12, 9
  CHECK(strict.at("step_ms").at("min") == 8.0);
  CHECK(strict.at("ratios").at("local").at("median") == doctest::Approx(1.5));  // 8/4, 12/10, 9/6
  CHECK(strict.at("ratios").at("local").at("max") == doctest::Approx(2.0));
  CHECK_FALSE(strict.at("ratios").contains("strict"));
  CHECK(strict.at("overlap").get<double>() == doctest::Approx(6.0 / 16.0));
  CHECK(strict.at("comm_ms").at("median") == 2.0);
  CHECK(strict.at("waiting_ms").at("median") == 0.5);  // 0, 0, 0, 1, 2, 4
  CHECK(strict.at("placing_ms").at("median") == 0.25);
  CHECK(strict.at("buckets") == 3);
}

}  // namespace brigade::test::bench_ddp_test
