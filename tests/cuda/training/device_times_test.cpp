// Device times of a backward and its collectives; without a GPU, over the stand-in of evidence/stand_ins.
#include "hold_stream.h"
#include "on_device.h"
#include "on_gpus.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/clock.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/ddp/trace.h>
#include <dist/nets.h>
#include "../../dist/trace_rules.h"

namespace brigade::test::device_times_test {

TEST_CASE("an event tells when it was reached, by the host's clock, and nothing before") {
  if (device_count(DeviceType::CUDA) == 0) return;
  const DeviceRuntime& runtime = device_runtime(kDevice);
  const auto early = runtime.new_event(0, true);
  const auto late = runtime.new_event(0, true);
  const auto untimed = runtime.new_event(0);
  CHECK(early->reached_at() == 0);
  const int64_t before = now_ns();
  early->record();
  untimed->record();
  runtime.synchronize(0);
  const int64_t between = now_ns();
  CHECK(untimed->reached_at() == 0);
  const std::jthread held = hold_stream(kDevice);
  late->record();
  CHECK(late->reached_at() == 0);
  late->synchronize();
  const int64_t after = now_ns();
  constexpr int64_t kOff = 1'000'000;  // clock differences on a busy machine
  CHECK(early->reached_at() > before - kOff);
  CHECK(early->reached_at() < between + kOff);
  const int64_t held_ns = std::chrono::nanoseconds(kHeld).count();
  CHECK(late->reached_at() > between + held_ns / 2);
  CHECK(late->reached_at() < after + kOff);
}

TEST_CASE("the timeline has the moments of the device when the device has passed them, and waits for none") {
  on_gpus(2, [&](const dist::ProcessGroupPtr& group, Device device) {
    manual_seed(11);
    BranchingNet net;
    net->to(device);
    dist::DistributedDataParallel ddp(net, group, {.bucket_cap_mb = 0.0001, .first_bucket_mb = 0.0001});
    const Tensor x = numbers({6, 4}, kFloat32, 3).to(device);
    const auto step = [&] {
      const Tensor y = ddp(x);
      (y * y).mean().backward();
      net->zero_grad();
    };
    step();
    ddp.timeline().keep(3);
    step();
    free_old_buckets(group, device);
    ddp.timeline().rounds();  // all their times are known
    const auto reached = device_runtime(device).new_event(device.index);
    // On a busy machine the step may take long: hold the stream until it is done.
    std::jthread held = hold_stream(device, std::chrono::minutes(1));
    reached->record();
    step();
    const auto& rounds = ddp.timeline().rounds();
    REQUIRE(rounds.size() == 3);
    CHECK(rounds[2].device_compute_ended == 0);
    CHECK(rounds[2].buckets[0].device_ended == 0);
    CHECK(!reached->query());
    held.request_stop();
    device_runtime(device).synchronize(device.index);
    const auto& known = ddp.timeline().rounds();
    for (const dist::RoundEvents& round : known) {
      CHECK(round.device_began > 0);
      CHECK(round.device_compute_ended >= round.device_began);
      CHECK(round.buckets.size() > 1);
      for (const dist::BucketEvents& bucket : round.buckets) {
        CHECK(bucket.arrived > 0);
        CHECK(bucket.reduced == 0);
        CHECK(bucket.device_began >= round.device_began);
        CHECK(bucket.device_ended >= bucket.device_began);
      }
      CHECK(round.communication() > 0);
    }
    // The host ran ahead of the device.
    CHECK(known[2].device_compute_ended > known[2].ended);
    const auto trace = nlohmann::json::parse(dist::trace_json(ddp));
    const ImportedTrace imported = import_trace(trace);
    for (const std::string& problem : imported.problems)
      CHECK(problem == "");
    size_t on_device = 0;
    for (const auto& event : trace.at("traceEvents"))
      on_device += event.at("name").get<std::string>().ends_with("on the device") && event.at("ph") != "e" &&
                   event.at("ph") != "E";
    size_t expected = 0;  // a backward and its buckets for each rank
    for (const dist::RoundEvents& round : known)
      expected += 2 * (1 + round.buckets.size());
    CHECK(on_device == expected);
  });
}

}  // namespace brigade::test::device_times_test
