// Backend auto with device tensors: NCCL if every rank can use it, host memory otherwise.
#include "device_collectives.h"

#include <brigade/core/device_runtime.h>
#include <brigade/dist/buckets/payload.h>
#include <brigade/dist/groups/threads/run_threads.h>

#include <doctest/doctest.h>

#include <mutex>

namespace brigade::test::auto_group_test {
namespace {

// The transport chosen for device tensors, and the contents of a wrapper's bucket.
struct Chosen {
  std::string before, after;
  double sum = 0;
  bool reaches = false;
  size_t staged_words = 0;  // bucket elements other than gradients
};

Chosen chosen_way(const dist::ProcessGroupPtr& control, Device device) {
  const dist::ProcessGroupPtr group = dist::make_nccl_or_staged_group(control);
  set_current_device(device);
  Chosen found{.before = group->backend()};
  const Tensor on_host = full({1}, 1.0);
  group->all_reduce(on_host)->wait();
  CHECK(found.before == group->backend());
  const Tensor x = filled(control->rank() + 1, {4}, kFloat32, device);
  group->all_reduce(x)->wait();
  found.sum = x.to_vector<double>()[3];
  found.after = group->backend();
  found.reaches = group->reaches(device);
  const dist::BucketLayout layout{.device = device, .parameters = {0}, .offsets = {0}, .gradient_numel = 16};
  const dist::Payload payload(*group, layout, {}, device_runtime(device).new_stream(device.index));
  found.staged_words = static_cast<size_t>(payload.whole().numel()) - 16;
  all_are(on_host, control->size());
  return found;
}

}  // namespace

TEST_CASE("auto: nccl where each rank has a device, by way of the host's memory where they share one; CPUs as before") {
  if (device_count(DeviceType::CUDA) < 2) return;
  for (const bool shared : {false, true}) {
    CAPTURE(shared);
    std::mutex mutex;
    std::vector<Chosen> all;
    dist::run_threads(2, [&](const dist::ProcessGroupPtr& control) {
      const Chosen found = chosen_way(control, Device(kCUDA, shared ? 0 : control->rank()));
      const std::lock_guard lock(mutex);
      all.push_back(found);
    });
    REQUIRE(all.size() == 2);
    for (const Chosen& found : all) {
      CHECK(found.before == "threads");
      CHECK(found.after == (shared ? "threads" : "nccl"));
      CHECK(found.sum == 3);
      CHECK(found.reaches == !shared);
      CHECK((found.staged_words > 0) == shared);
    }
  }
}

TEST_CASE("auto: a second device of a rank goes by way of the host's memory") {
  if (device_count(DeviceType::CUDA) < 4) return;
  dist::run_threads(2, [&](const dist::ProcessGroupPtr& control) {
    const dist::ProcessGroupPtr group = dist::make_nccl_or_staged_group(control);
    for (const int index : {control->rank(), control->rank() + 2}) {
      const Device device(kCUDA, index);
      set_current_device(device);
      const Tensor x = filled(control->rank() + 1, {4}, kFloat32, device);
      group->all_reduce(x)->wait();
      all_are(x, 3);
      CHECK(group->reaches(device) == (index < 2));
    }
  });
}

}  // namespace brigade::test::auto_group_test
