#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::scan_cases {

namespace {

const AddCases add_scan_cases([] {
  const auto with_zeros = [](std::vector<double> values) {
    const auto count = static_cast<int64_t>(values.size()) / 2;
    return tensor(values, {2, count}).requires_grad_();
  };
  return std::vector<Case>{
      {"cumsum",
       [](const Inputs& i) { return cumsum(i[0], 1) * i[1]; },
       {input({2, 4, 3}), fixed({2, 4, 3}, 1)},
       {.roundings = 2}},
      {"cumsum last",
       [](const Inputs& i) { return cumsum(i[0], -1) * i[1]; },
       {input({2, 5}), fixed({2, 5}, 1)},
       {.roundings = 2}},
      {"cumprod",
       [](const Inputs& i) { return cumprod(i[0], 0) * i[1]; },
       {input({5, 2}), fixed({5, 2}, 1)},
       {.roundings = 4}},
      {"cumprod with zeros",
       [](const Inputs& i) { return cumprod(i[0], 1) * i[1]; },
       {with_zeros({0.5, 0, -1.5, 2, 0, 0.75, 1.25, -0.5, 2, 0}), fixed({2, 5}, 1)},
       {.roundings = 4}},
      {"logcumsumexp",
       [](const Inputs& i) { return logcumsumexp(i[0] * 3.0, 1) * i[1]; },
       {input({2, 5}), fixed({2, 5}, 1)},
       {.roundings = 4}},
      {"linear_recurrence",
       [](const Inputs& i) { return linear_recurrence(i[0], i[1], 1) * i[2]; },
       {input({2, 5}), input({2, 5}, 2), fixed({2, 5}, 1)},
       {.roundings = 4}},
      {"linear_recurrence from the end",
       [](const Inputs& i) { return linear_recurrence(i[0], i[1], 0, true) * i[2]; },
       {input({4, 2}), input({4, 2}, 2), fixed({4, 2}, 1)},
       {.roundings = 4}},
  };
});

}  // namespace

}  // namespace brigade::test::scan_cases
