// Optimizers and clipping with parameters of several dtypes on several devices, compared with the CPU.
#include "on_device.h"

#include <near.h>

#include <brigade/autograd/functional.h>
#include <brigade/optim/optim.h>

namespace brigade::test::optim_devices_test {
namespace {

// Parameters of two alternating dtypes, on both sides; every third of `there` is on the CPU.
struct Sides {
  std::vector<Tensor> here, there;

  Sides() {
    for (uint64_t i = 0; i < 12; ++i) {
      const DType dtype = i % 2 == 0 ? kFloat32 : kFloat64;
      here.push_back(numbers({static_cast<int64_t>(3 * i + 1)}, dtype, i + 1));
      there.push_back(i % 3 == 2 ? kernels::clone(here.back()) : on_device(here.back()));
      here.back().requires_grad_();
      there.back().requires_grad_();
    }
  }
  void set_gradients(uint64_t step) const {
    for (size_t i = 0; i < here.size(); ++i) {
      const bool rests = (i + step) % 5 == 0;
      const Tensor grad = numbers(here[i].sizes(), here[i].dtype(), 100 * step + i);
      here[i].set_grad(rests ? Tensor() : grad);
      there[i].set_grad(rests                                       ? Tensor()
                        : there[i].device().type == DeviceType::CPU ? kernels::clone(grad)
                                                                    : on_device(grad));
    }
  }
  double difference() const {
    double worst = 0;
    for (size_t i = 0; i < here.size(); ++i)
      worst = worse(worst, test::difference(there[i], on_cpu(here[i])));
    return worst;
  }
};

template <class O, class Options>
void compare(const Options& options) {
  const Sides sides;
  O here(sides.here, options), there(sides.there, options);
  for (uint64_t step = 0; step < 4; ++step) {
    sides.set_gradients(step);
    for (const double norm : {1.0, 2.0, static_cast<double>(INFINITY)}) {
      const double bound = norm == 1 ? 40 : 3;
      CHECK(optim::clip_grad_norm_(sides.there, bound, {.norm_type = norm}) ==
            doctest::Approx(optim::clip_grad_norm_(sides.here, bound, {.norm_type = norm})).epsilon(1e-6));
    }
    here.step();
    there.step();
    CHECK(sides.difference() <= 1e-4);
  }
}

}  // namespace

TEST_CASE("SGD, Adam, AdamW and clipping on a device, with parameters of two dtypes, some of them on the CPU") {
  compare<optim::SGD>(optim::SGDOptions{.lr = 0.1});
  compare<optim::SGD>(optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
  optim::AdamOptions adam;
  adam.lr = 0.1;
  adam.amsgrad = true;
  compare<optim::Adam>(adam);
  optim::AdamWOptions adamw;
  adamw.lr = 0.1;
  compare<optim::AdamW>(adamw);
}

}  // namespace brigade::test::optim_devices_test
