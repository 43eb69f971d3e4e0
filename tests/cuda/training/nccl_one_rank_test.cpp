// With BRIGADE_NCCL_ONE_RANK, a group of one rank calls NCCL: everything of NCCL that can run on a machine with one
// GPU, from the communicator to a captured step. Without a GPU, over the stand-in of evidence/stand_ins.
#include "device_collectives.h"
#include "on_gpus.h"
#include "replayed_steps.h"

#include <core/error_of.h>
#include <scoped_environment.h>

#include <brigade/autograd/functional.h>
#include <brigade/core/cuda/graph.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/groups/coalescing_manager.h>
#include <brigade/dist/groups/nccl/communicator.h>
#include <brigade/dist/groups/new_group.h>
#include <brigade/optim/optim.h>
#include <dist/nets.h>

#include <vector>

#ifndef BRIGADE_REAL_CUDA
extern "C" size_t nccl_stand_in_commands();
extern "C" size_t nccl_stand_in_registered(const void* data);
#endif

namespace brigade::test::nccl_one_rank_test {
namespace nccl = brigade::dist::nccl;

namespace {

constexpr const char* kSwitch = "BRIGADE_NCCL_ONE_RANK";
constexpr std::chrono::seconds kTimeout{30};

// Only collectives that were passed to NCCL have device times.
bool was_issued(const dist::WorkPtr& work, Device device) {
  work->wait();
  device_runtime(device).synchronize(device.index);
  return work->on_device().ended != 0;
}

std::unique_ptr<nccl::Communicator> make_alone() {
  const nccl::Library& library = nccl::library();
  nccl::UniqueId id;
  REQUIRE(library.get_unique_id(&id) == nccl::Result::Success);
  return std::make_unique<nccl::Communicator>(library, id, 0, 1, kDevice, kTimeout, 0);
}

// Sums over one rank, to other memory so that NCCL has work to do.
void sum(nccl::Communicator& communicator, const Tensor& from, const Tensor& to, const cuda::Stream& stream) {
  communicator.call("ncclAllReduce", [&](nccl::Comm comm) {
    return nccl::library().all_reduce(from.raw_data(), to.raw_data(), static_cast<size_t>(from.numel()),
                                      nccl::DataType::Float32, nccl::RedOp::Sum, comm, stream.get());
  });
}

struct Training {
  BranchingNet net;
  std::unique_ptr<dist::DistributedDataParallel<BranchingNet>> ddp;
  std::unique_ptr<optim::SGD> optimizer;
  Tensor x;

  Training(const dist::ProcessGroupPtr& group, Device device) {
    manual_seed(11);
    net = BranchingNet();
    net->to(device);
    x = zeros({6, 4}).to(device);
    ddp = std::make_unique<dist::DistributedDataParallel<BranchingNet>>(net, group,
                                                                        dist::DDPOptions{.bucket_cap_mb = 1e-6});
    optimizer = std::make_unique<optim::SGD>(net->parameters(), optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
  }
  void set_batch(int step) { kernels::copy(x, numbers({6, 4}, kFloat32, static_cast<uint64_t>(10 * step + 1))); }
  void step() {
    optimizer->zero_grad();
    const Tensor y = (*ddp)(x);
    (y * y).mean().backward();
    optimizer->step();
  }
  std::vector<std::vector<double>> state() const {
    std::vector<std::vector<double>> values;
    for (const Tensor& parameter : net->parameters())
      values.push_back(parameter.to_vector<double>());
    return values;
  }
};

}  // namespace

TEST_CASE("a communicator of one rank is made, computes, is captured, registers memory, and is finalized") {
  if (!has_gpus_for(1)) return;
  set_current_device(kDevice);
  const auto communicator = make_alone();
  const cuda::Stream stream = cuda::Stream::create();
  const cuda::StreamGuard guard(stream);
  const Tensor from = filled(3, {1000}, kFloat32, kDevice), to = filled(-1, {1000}, kFloat32, kDevice);
  sum(*communicator, from, to, stream);
  all_are(to, 3);
  cuda::Graph graph;
  graph.capture_begin();
  sum(*communicator, from, to, stream);
  graph.capture_end();
  CHECK(graph.nodes() > 0);
  for (const double value : {5.0, 7.0}) {
    kernels::fill(from, value);
    graph.replay();
    all_are(to, value);
  }
  graph.reset();
  const nccl::Library& library = nccl::library();
  if (library.mem_alloc) {
    void* memory = nullptr;
    REQUIRE(library.mem_alloc(&memory, 4096) == nccl::Result::Success);
    void* const registration = communicator->register_memory(memory, 4096);
#ifndef BRIGADE_REAL_CUDA
    CHECK(registration != nullptr);  // NCCL may decline to register
#endif
    communicator->deregister(registration);
    CHECK(library.mem_free(memory) == nccl::Result::Success);
  }
  CHECK_FALSE(communicator->asynchronous_error().has_value());
}

TEST_CASE("a communicator of one rank is aborted, also with a collective under way, and another one is made") {
  if (!has_gpus_for(1)) return;
  set_current_device(kDevice);
  const cuda::Stream stream = cuda::Stream::create();
  const cuda::StreamGuard guard(stream);
  for (int round = 0; round < 2; ++round) {
    const auto communicator = make_alone();
    const Tensor from = filled(3, {1 << 20}, kFloat32, kDevice), to = filled(-1, {1 << 20}, kFloat32, kDevice);
    sum(*communicator, from, to, stream);
    communicator->abort();
    CHECK(text_of<DistError>([&] {
            sum(*communicator, from, to, stream);
          }).starts_with("ncclAllReduce: the communicator of rank 0 was aborted"));
    stream.synchronize();
  }
}

TEST_CASE("without being asked for, a rank alone calls nothing of NCCL") {
  on_gpus(1, [](const dist::ProcessGroupPtr& group, Device device) {
    const Tensor x = filled(2, {8}, kFloat32, device);
    CHECK_FALSE(was_issued(group->all_reduce(x), device));
    all_are(x, 2);
  });
}

TEST_CASE(
    "where it is asked for, a rank alone calls NCCL for every collective, and for those that are issued together") {
  const ScopedEnvironment asked{{kSwitch, "1"}};
#ifndef BRIGADE_REAL_CUDA
  const size_t before = nccl_stand_in_commands();
#endif
  on_gpus(1, [](const dist::ProcessGroupPtr& group, Device device) {
    CHECK(std::string(group->backend()) == "nccl");
    check_collectives(*group, device, {kFloat32, kFloat64, kFloat16, kBFloat16, kInt64, kInt32, kUInt8});
    check_stream_order(*group, device);
    const Tensor x = filled(2, {8}, kFloat32, device), y = filled(3, {9}, kFloat64, device);
    CHECK(was_issued(group->all_reduce(x, {.op = dist::ReduceOp::Avg}), device));
    all_are(x, 2);
    dist::CoalescingManager together(group);
    group->all_reduce(x);
    group->all_reduce(y);
    together.end()->wait();
    all_are(x, 2);
    all_are(y, 3);
    // A split of the communicator with the same single rank.
    const dist::ProcessGroupPtr part = dist::new_group(group, {0});
    CHECK(was_issued(part->all_reduce(x), device));
    all_are(x, 2);
  });
#ifndef BRIGADE_REAL_CUDA
  // 7 dtypes x 6 collectives, 25 rounds x 2, and the other three.
  CHECK(nccl_stand_in_commands() - before == 7 * 6 + 25 * 2 + 3);
#endif
}

TEST_CASE("steps of a rank alone over NCCL, by themselves and captured, leave what they leave without it, to the bit") {
  if (!has_gpus_for(1)) return;
  const Steps steps{.count = 5, .warm_up = 2, .beside = 1};
  const auto make = [](const dist::ProcessGroupPtr& group, Device device) { return Training(group, device); };
  const auto expected = states_of(1, steps, false, make);
  const ScopedEnvironment asked{{kSwitch, "1"}};
  for (const bool captured : {false, true}) {
    CAPTURE(captured);
    check_same_states(states_of(1, steps, captured, make), expected);
  }
}

TEST_CASE("buckets of a rank alone are NCCL's memory, and a group that is aborted says so") {
  const ScopedEnvironment asked{{kSwitch, "1"}};
  on_gpus(1, [](const dist::ProcessGroupPtr& group, Device device) {
    const Tensor x = filled(2, {8}, kFloat32, device);
    group->all_reduce(x)->wait();
    const Tensor bucket = group->allocate(8, kFloat32, device);
#ifndef BRIGADE_REAL_CUDA
    CHECK(nccl_stand_in_registered(bucket.raw_data()) == 32);
#endif
    kernels::fill(bucket, 4);
    CHECK(was_issued(group->all_reduce(bucket), device));
    all_are(bucket, 4);
    group->abort("enough");
    CHECK(text_of<DistError>([&] {
            group->all_reduce(x)->wait();
          }).starts_with("the nccl group was aborted on rank 0: enough"));
    all_are(x, 2);
  });
}

}  // namespace brigade::test::nccl_one_rank_test
