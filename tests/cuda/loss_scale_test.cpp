// A loss scale on the device, and an SGD step that reads values there which the host does not know: compared with the
// CPU.
#include "tensor_pairs.h"

#include <brigade/kernels/optimizer.h>

namespace brigade::test::loss_scale_test {
using namespace brigade::kernels;

TEST_CASE("a loss scale on the device changes as the CPU's") {
  const Tensor scale = full({}, 8.0), inverse = full({}, 1.0), tracker = zeros({}, kInt64);
  const Tensor scale_there = on_device(scale), inverse_there = on_device(inverse), tracker_there = on_device(tracker);
  const LossScaleRule rule{.growth_factor = 3, .backoff_factor = 0.3, .growth_interval = 2};
  for (const double found : {0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 5.0}) {
    update_loss_scale(scale, inverse, tracker, full({}, found), rule);
    update_loss_scale(scale_there, inverse_there, tracker_there, on_device(full({}, found)), rule);
    CHECK(on_cpu(scale_there).item() == scale.item());
    CHECK(on_cpu(inverse_there).item() == inverse.item());
    CHECK(on_cpu(tracker_there).item() == tracker.item());
  }
  CHECK(scale.item() != 8);
}

TEST_CASE("SGD on the device takes a factor from its memory, and leaves all as it is where something was found") {
  for (const DType dtype : kFloatingDTypes) {
    for (const bool has_momentum : {false, true}) {
      const Pair params(kMixed, dtype, 1), grads(kMixed, dtype, 2);
      const Pair buffers(has_momentum ? kMixed : std::vector<int64_t>{}, dtype, 3);
      SgdParams here{0.25, has_momentum ? 0.9 : 0.0, 0, 0.01, false, false, false, 0.5};
      SgdParams there = here;
      there.device_factor = on_device(full({}, 0.25));
      there.found_inf = on_device(ones({}));
      foreach_sgd_step(params.there, grads.there, buffers.there, there);
      CHECK(params.difference() == 0);
      CHECK(buffers.difference() == 0);
      here.device_factor = full({}, 0.25);
      there.found_inf = on_device(zeros({}));
      foreach_sgd_step(params.here, grads.here, buffers.here, here);
      CHECK(params.difference() != 0);
      foreach_sgd_step(params.there, grads.there, buffers.there, there);
      CHECK(params.difference() <= (dtype == kFloat64 ? 1e-14 : dtype == kFloat32 ? 1e-6 : 1e-2));
      CHECK(buffers.difference() <= (dtype == kFloat64 ? 1e-14 : dtype == kFloat32 ? 1e-6 : 1e-2));
    }
  }
}

}  // namespace brigade::test::loss_scale_test
