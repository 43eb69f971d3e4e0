// Flags and words of a device bucket that the host reduces: exact for any world size.
#include "on_device.h"

#include <brigade/dist/buckets/payload.h>
#include <brigade/dist/comm_hooks/comm_hook.h>
#include <brigade/dist/groups/arithmetic.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/kernels/elementwise.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace brigade::test::payload_test {
namespace {

// A group of any size that does nothing, for a bucket on the device with its flags and words on the host.
class Paper final : public dist::ProcessGroup {
 public:
  explicit Paper(int size) : ProcessGroup(0, size, std::chrono::seconds(1)) {}
  const char* backend() const noexcept override { return "paper"; }
  bool reaches(Device) const noexcept override { return true; }
  Tensor allocate(int64_t numel, DType dtype) override { return empty({numel}, dtype); }
  void abort(std::string_view) override {}

 protected:
  dist::WorkPtr do_all_reduce(const Tensor&, const dist::CollectiveOptions&) override { return nullptr; }
  dist::WorkPtr do_broadcast(const Tensor&, const dist::CollectiveOptions&) override { return nullptr; }
  dist::WorkPtr do_all_gather(const Tensor&, const Tensor&, const dist::CollectiveOptions&) override { return nullptr; }
  dist::WorkPtr do_reduce_scatter(const Tensor&, const Tensor&, const dist::CollectiveOptions&) override {
    return nullptr;
  }
  dist::WorkPtr do_barrier(const dist::CollectiveOptions&) override { return nullptr; }
};

}  // namespace

TEST_CASE("a flag is counted exactly for any world up to 65,536 ranks, whatever the bucket's dtype") {
  for (const DType dtype : {kFloat32, kFloat16, kBFloat16}) {
    for (const int ranks : {1, 2, 3, 7, 12, 100, 255, 257, 1000, 2047, 2048, 2049, 4097, 65535, 65536}) {
      Paper group(ranks);
      const dist::BucketLayout layout{
          .dtype = dtype, .device = kDevice, .parameters = {0, 1}, .offsets = {0, 32}, .gradient_numel = 64};
      dist::Payload payload(group, layout);
      CHECK(payload.has_tail_on_host());
      CHECK(payload.whole().dtype() == dtype);
      CHECK(payload.whole().numel() == 64);
      const Tensor of_others = kernels::clone(payload.tail());
      payload.set_flag(1, true);
      payload.set(dist::Word::Present, true);
      payload.set_number(dist::Word::Round, 3);
      payload.send();
      const Tensor of_user = kernels::clone(payload.tail());
      for (const int users : {0, 1, ranks / 2, ranks - 1, ranks}) {
        // The same reduction as in the host groups.
        std::vector<void*> inputs(static_cast<size_t>(ranks), of_others.raw_data());
        std::fill_n(inputs.begin(), users, of_user.raw_data());
        void* const output = payload.tail().raw_data();
        dist::reduce_elements(inputs, {&output, 1}, kFloat32, dist::ReduceOp::Avg, 0, payload.tail().numel());
        payload.receive(*dist::completed_work());
        CHECK(payload.flag_count(0) == 0);
        CHECK(payload.flag_count(1) == users);
        CHECK(payload.count(dist::Word::Present) == users);
        CHECK(payload.all_equal(dist::Word::Round) == (users == 0 || users == ranks));
      }
    }
  }
}

}  // namespace brigade::test::payload_test
