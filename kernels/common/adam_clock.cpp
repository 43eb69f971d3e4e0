// Creates an Adam clock, and checks the arguments of its kernels.
#include <brigade/kernels/common/adam_clock.h>

#include <brigade/kernels/common/data_or_null.h>
#include <brigade/kernels/common/number_argument.h>
#include <brigade/kernels/factory.h>

namespace brigade::kernels {

Tensor make_adam_clock(int64_t steps, Device device) {
  return full({3}, static_cast<double>(steps), {kFloat64, device});
}

void check_adam_clock(const char* what, const Tensor& clock) {
  if (clock.dtype() != kFloat64) throw DTypeError("{}: expected a clock of float64, got {}", what, describe(clock));
  if (clock.sizes() != std::vector<int64_t>{3} || !clock.is_contiguous())
    throw ShapeError("{}: expected a contiguous clock of shape [3], got {}", what, describe(clock));
}

AdamClockAdvance adam_clock_advance(const Tensor& clock, const Tensor& found_inf, double beta1, double beta2) {
  const char* const what = "advance_adam_clock";
  check_adam_clock(what, clock);
  if (found_inf.defined()) check_number(what, "found_inf", found_inf, clock, kFloat32);
  return {.clock = clock.data_ptr<double>(),
          .found_inf = data_or_null<const float>(found_inf),
          .beta1 = beta1,
          .beta2 = beta2};
}

}  // namespace brigade::kernels
