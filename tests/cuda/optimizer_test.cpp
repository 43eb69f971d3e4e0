// Optimizer steps over many parameters: CUDA kernels, compared with the CPU's.
#include "tensor_pairs.h"

#include <near.h>

#include <brigade/kernels/optimizer.h>

namespace brigade::test::optimizer_test {
using namespace brigade::kernels;

namespace {

// The CPU may fuse multiply-adds that the device does not (x86-64-v3 compared with the emulation); centered RMSprop,
// which divides by the root of a difference, is affected most.
double step_tolerance(DType dtype) {
  return dtype == kFloat32 ? 2e-5 : dtype == kFloat64 ? 1e-12 : 10 * tolerance(dtype);
}

// Parameters, gradients, and enough state for any step, on both sides; compare_steps calls its step for every dtype,
// alignment, and mix of sizes.
struct Lists {
  Pair params, grads, first, second, third;
  double difference() const {
    double worst = 0;
    for (const Pair* pair : {&params, &first, &second, &third})
      worst = worse(worst, pair->difference());
    return worst;
  }
};
template <class Step>
void compare_steps(Step&& step) {
  for (const DType dtype : kFloatingDTypes) {
    for (const auto& [late, sizes] : kStarts) {
      CAPTURE(name(dtype));
      CAPTURE(late);
      const Lists lists{Pair(sizes, dtype, 1, late & 1), Pair(sizes, dtype, 2, late & 1),
                        Pair(sizes, dtype, 3, late & 1), Pair(sizes, dtype, 4, late >> 1),
                        Pair(sizes, dtype, 5, late & 1)};
      step(lists);
      CHECK(lists.difference() <= step_tolerance(dtype));
      CHECK(lists.grads.difference() == 0);
    }
  }
}

}  // namespace

TEST_CASE("Adam counts its steps in the device's memory, and leaves all as it is where something was found") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    const Pair params(kMixed, dtype, 1), grads(kMixed, dtype, 2), first(kMixed, dtype, 3), second(kMixed, dtype, 4);
    AdamParams here{0.1, 0.9, 0.99, 1e-8, 0.01, 0, true, false, 0.125};
    AdamParams there = here;
    there.grad_factor = 0.5;
    there.device_factor = on_device(full({}, 0.25));
    there.clock = make_adam_clock(2, on_device(ones({})).device());
    for (const double found : {1.0, 0.0, 0.0, 1.0, 0.0}) {
      there.found_inf = on_device(full({}, found));
      const double before = params.difference();
      advance_adam_clock(there.clock, there.found_inf, there.beta1, there.beta2);
      foreach_adam_step(params.there, grads.there, first.there, second.there, {}, there);
      if (found != 0) {
        CHECK(params.difference() == before);
        continue;
      }
      here.step = static_cast<int64_t>(on_cpu(there.clock).to_vector<double>()[0]);
      foreach_adam_step(params.here, grads.here, first.here, second.here, {}, here);
      for (const Pair* pair : {&params, &first, &second})
        CHECK(pair->difference() <= step_tolerance(dtype));
    }
    CHECK(on_cpu(there.clock).to_vector<double>()[0] == 5);
  }
}

TEST_CASE("SGD steps of many parameters") {
  for (const DType dtype : kFloatingDTypes) {
    for (const auto& [late, sizes] : kStarts) {
      CAPTURE(name(dtype));
      CAPTURE(late);
      const Pair params(sizes, dtype, 1, late & 1), grads(sizes, dtype, 2, late & 1),
          buffers(sizes, dtype, 3, late >> 1);
      for (const bool nesterov : {false, true}) {
        for (const bool first : {true, false}) {
          const SgdParams s{0.1, 0.9, nesterov ? 0 : 0.2, 0.01, nesterov, first, first};
          foreach_sgd_step(params.here, grads.here, buffers.here, s);
          foreach_sgd_step(params.there, grads.there, buffers.there, s);
        }
      }
      const SgdParams plain{0.1, 0, 0, 0.3, false, false, false, 0.25};
      foreach_sgd_step(params.here, grads.here, {}, plain);
      foreach_sgd_step(params.there, grads.there, {}, plain);
      CHECK(params.difference() <= step_tolerance(dtype));
      CHECK(buffers.difference() <= step_tolerance(dtype));
      CHECK(grads.difference() == 0);
    }
  }
}

TEST_CASE("Adam steps of many parameters") {
  for (const DType dtype : kFloatingDTypes) {
    for (const auto& [late, sizes] : kStarts) {
      CAPTURE(name(dtype));
      CAPTURE(late);
      const Pair params(sizes, dtype, 1, late & 1), grads(sizes, dtype, 2, late & 1), m(sizes, dtype, 3, late & 1),
          v(sizes, dtype, 4, late >> 1), x(sizes, dtype, 5, late & 1);
      for (const bool decoupled : {false, true}) {
        const AdamParams a{1e-2, 0.9, 0.99, 1e-8, 0.1, 3, decoupled, decoupled, decoupled ? 0.5 : 1};
        foreach_adam_step(params.here, grads.here, m.here, v.here, {}, a);
        foreach_adam_step(params.there, grads.there, m.there, v.there, {}, a);
        foreach_adam_step(params.here, grads.here, m.here, v.here, x.here, a);
        foreach_adam_step(params.there, grads.there, m.there, v.there, x.there, a);
      }
      for (const Pair* pair : {&params, &m, &v, &x})
        CHECK(pair->difference() <= step_tolerance(dtype));
      CHECK(grads.difference() == 0);
    }
  }
}

TEST_CASE("RMSprop steps of many parameters") {
  compare_steps([](const Lists& x) {
    for (const bool maximize : {false, true}) {
      const RmspropParams r{1e-2, 0.9, 1e-3, 0.1, 0.8, maximize};
      foreach_rmsprop_step(x.params.here, x.grads.here, x.first.here, {}, {}, r);
      foreach_rmsprop_step(x.params.there, x.grads.there, x.first.there, {}, {}, r);
      foreach_rmsprop_step(x.params.here, x.grads.here, x.first.here, {}, x.second.here, r);
      foreach_rmsprop_step(x.params.there, x.grads.there, x.first.there, {}, x.second.there, r);
    }
  });
  compare_steps([](const Lists& x) {
    // Gradient averages small enough against the averages of squares that the variance is positive.
    foreach_scale(x.third.here, 0.1, Tensor());
    foreach_scale(x.third.there, 0.1, Tensor());
    for (const auto* lists : {&x.first, &x.second}) {
      for (size_t i = 0; i < lists->here.size(); ++i) {
        fill(lists->here[i], 1);
        fill(lists->there[i], 1);
      }
    }
    const RmspropParams r{1e-2, 0.9, 1e-3, 0, 0.8, false};
    foreach_rmsprop_step(x.params.here, x.grads.here, x.first.here, x.third.here, {}, r);
    foreach_rmsprop_step(x.params.there, x.grads.there, x.first.there, x.third.there, {}, r);
    foreach_rmsprop_step(x.params.here, x.grads.here, x.first.here, x.third.here, x.second.here, r);
    foreach_rmsprop_step(x.params.there, x.grads.there, x.first.there, x.third.there, x.second.there, r);
  });
}

TEST_CASE("Adagrad and Adadelta steps of many parameters") {
  compare_steps([](const Lists& x) {
    for (const bool maximize : {false, true}) {
      const AdagradParams a{1e-2, 0.1, 1e-3, 0.1, 3, maximize};
      foreach_adagrad_step(x.params.here, x.grads.here, x.first.here, a);
      foreach_adagrad_step(x.params.there, x.grads.there, x.first.there, a);
      const AdadeltaParams d{0.1, 0.9, 1e-3, 0.1, maximize};
      foreach_adadelta_step(x.params.here, x.grads.here, x.second.here, x.third.here, d);
      foreach_adadelta_step(x.params.there, x.grads.there, x.second.there, x.third.there, d);
    }
  });
}

TEST_CASE("Lion steps of many parameters") {
  compare_steps([](const Lists& x) {
    // Update directions are never close to 0 here, since all numbers are positive.
    const LionParams l{1e-2, 0.9, 0.99, 0.1, false};
    foreach_lion_step(x.params.here, x.grads.here, x.first.here, l);
    foreach_lion_step(x.params.there, x.grads.there, x.first.there, l);
  });
}

TEST_CASE("RAdam and NAdam steps of many parameters") {
  compare_steps([](const Lists& x) {
    for (const bool decoupled : {false, true}) {
      for (const int64_t step : {2, 40}) {  // without and with the rectification
        const RAdamParams r{1e-2, 0.9, 0.99, 1e-3, 0.1, step, decoupled, !decoupled};
        foreach_radam_step(x.params.here, x.grads.here, x.first.here, x.second.here, r);
        foreach_radam_step(x.params.there, x.grads.there, x.first.there, x.second.there, r);
      }
      const NAdamParams n{1e-2, 0.9, 0.99, 1e-3, 0.1, 4e-3, 3, 0.09, decoupled, !decoupled};
      foreach_nadam_step(x.params.here, x.grads.here, x.first.here, x.second.here, n);
      foreach_nadam_step(x.params.there, x.grads.there, x.first.there, x.second.there, n);
    }
  });
}

}  // namespace brigade::test::optimizer_test
