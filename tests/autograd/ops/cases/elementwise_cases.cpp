// Arithmetic, powers, elementary functions, clamps and choices, for the checks of derivatives.
#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>
#include "../cases.h"

namespace brigade::test::elementwise_cases {
namespace {

const AddCases add_arithmetic_cases([] {
  return std::vector<Case>{
      {"add", [](const Inputs& i) { return i[0] + i[1]; }, {input({2, 3}), input({2, 3}, 2)}},
      {"add broadcast", [](const Inputs& i) { return i[0] + i[1]; }, {input({2, 1, 3}), input({4, 1}, 2)}},
      {"add number", [](const Inputs& i) { return 2.5 + i[0]; }, {input({3})}},
      {"sub", [](const Inputs& i) { return i[0] - i[1]; }, {input({2, 3}), input({3}, 2)}},
      {"sub number", [](const Inputs& i) { return (1.5 - i[0]) * 2.0 - (i[0] - 3.0); }, {input({3})}},
      {"mul", [](const Inputs& i) { return i[0] * i[1]; }, {input({2, 3}), input({2, 1}, 2)}},
      {"mul itself", [](const Inputs& i) { return i[0] * i[0]; }, {input({3})}},
      {"div", [](const Inputs& i) { return i[0] / i[1]; }, {input({2, 3}), input({3}, 2)}},
      {"div number", [](const Inputs& i) { return i[0] / 3.0 + 2.0 / i[0]; }, {input({4})}},
      {"maximum", [](const Inputs& i) { return maximum(i[0], i[1]); }, {input({2, 3}), input({3}, 2)}},
      {"minimum", [](const Inputs& i) { return minimum(i[0], i[1]); }, {input({2, 3}), input({3}, 2)}},
      {"neg", [](const Inputs& i) { return -i[0]; }, {input({3})}},
      {"abs", [](const Inputs& i) { return abs(i[0]); }, {input({5})}},
      {"exp", [](const Inputs& i) { return exp(i[0]); }, {input({5})}},
      {"log", [](const Inputs& i) { return log(i[0]); }, {input({5}, 1, true)}},
      {"sqrt", [](const Inputs& i) { return sqrt(i[0]); }, {input({5}, 1, true)}},
      {"reciprocal", [](const Inputs& i) { return reciprocal(i[0]); }, {input({5})}},
      {"square", [](const Inputs& i) { return square(i[0]); }, {input({5})}},
  };
});

const AddCases add_power_cases([] {
  return std::vector<Case>{
      {"pow", [](const Inputs& i) { return pow(i[0], i[1]); }, {input({2, 3}, 1, true), input({3}, 2)}},
      {"pow of a negative base",
       [](const Inputs& i) { return pow(i[0], i[1]); },
       {input({2, 3}), tensor(std::vector<double>{2, 3, -1}, {3})}},
      {"pow of fixed numbers", [](const Inputs& i) { return pow(i[0], i[1]); }, {fixed({2, 1}, 3), input({3}, 2)}},
      {"pow number",
       [](const Inputs& i) { return pow(i[0], 1.7) + pow(i[0], 0.5) + pow(i[0], 0.0); },
       {input({7}, 1, true)}},
      {"pow whole number",
       [](const Inputs& i) { return pow(i[0], 2.0) + pow(i[0], 3.0) - pow(i[0], -1.0); },
       {input({7})}},
      {"number pow", [](const Inputs& i) { return pow(0.3, i[0]); }, {input({7})}},
      {"atan2", [](const Inputs& i) { return brigade::atan2(i[0], i[1]); }, {input({2, 3}), input({3}, 2)}},
      {"remainder", [](const Inputs& i) { return remainder(i[0] * 3.0, i[1]); }, {input({2, 3}), input({3}, 2)}},
      {"remainder number", [](const Inputs& i) { return remainder(i[0] * 3.0, -0.7); }, {input({7})}},
      {"fmod", [](const Inputs& i) { return brigade::fmod(i[0] * 3.0, i[1]); }, {input({2, 3}), input({3}, 2)}},
      {"fmod number", [](const Inputs& i) { return brigade::fmod(i[0] * 3.0, 0.7); }, {input({7})}},
  };
});

const AddCases add_elementary_cases([] {
  return std::vector<Case>{
      {"rsqrt", [](const Inputs& i) { return rsqrt(i[0]); }, {input({7}, 1, true)}},
      {"sin", [](const Inputs& i) { return brigade::sin(i[0] * 3.0); }, {input({7})}},
      {"cos", [](const Inputs& i) { return brigade::cos(i[0] * 3.0); }, {input({7})}},
      {"tan", [](const Inputs& i) { return brigade::tan(i[0] * 0.8); }, {input({7})}},
      {"asin", [](const Inputs& i) { return brigade::asin(i[0] * 0.6); }, {input({7})}},
      {"acos", [](const Inputs& i) { return brigade::acos(i[0] * 0.6); }, {input({7})}},
      {"atan", [](const Inputs& i) { return brigade::atan(i[0]); }, {input({7})}},
      {"sinh", [](const Inputs& i) { return brigade::sinh(i[0]); }, {input({7})}},
      {"cosh", [](const Inputs& i) { return brigade::cosh(i[0]); }, {input({7})}},
      {"log1p", [](const Inputs& i) { return brigade::log1p(i[0] * 0.6); }, {input({7})}},
      {"expm1", [](const Inputs& i) { return brigade::expm1(i[0]); }, {input({7})}},
      {"log2", [](const Inputs& i) { return brigade::log2(i[0]); }, {input({7}, 1, true)}},
      {"log10", [](const Inputs& i) { return brigade::log10(i[0]); }, {input({7}, 1, true)}},
      {"exp2", [](const Inputs& i) { return brigade::exp2(i[0]); }, {input({7})}},
      {"erf", [](const Inputs& i) { return brigade::erf(i[0]); }, {input({7})}},
      {"erfc", [](const Inputs& i) { return brigade::erfc(i[0]); }, {input({7})}},
      {"floor", [](const Inputs& i) { return brigade::floor(i[0]) * i[0]; }, {input({7})}},
      {"ceil", [](const Inputs& i) { return brigade::ceil(i[0]) * i[0]; }, {input({7})}},
      {"round", [](const Inputs& i) { return brigade::round(i[0]) * i[0]; }, {input({7})}},
      {"trunc", [](const Inputs& i) { return brigade::trunc(i[0]) * i[0]; }, {input({7})}},
  };
});

const AddCases add_clamp_cases([] {
  return std::vector<Case>{
      {"clamp", [](const Inputs& i) { return clamp(i[0], -0.5, 0.8); }, {input({7})}},
      {"clamp from below", [](const Inputs& i) { return clamp(i[0], -0.5); }, {input({7})}},
      {"clamp_min", [](const Inputs& i) { return clamp_min(i[0], 0.5); }, {input({7})}},
      {"clamp_max", [](const Inputs& i) { return clamp_max(i[0], 0.5); }, {input({7})}},
      {"clamp between tensors",
       [](const Inputs& i) { return clamp(i[0], i[1] - 1.0, i[2]); },
       {input({2, 5}), input({5}, 2), input({2, 1}, 3)}},
      {"clamp between crossing tensors",
       [](const Inputs& i) { return clamp(i[0], i[1], i[2]); },
       {input({2, 5}), input({5}, 2), input({2, 1}, 3)}},
      {"clamp above a tensor", [](const Inputs& i) { return clamp(i[0], i[1]); }, {input({2, 5}), input({5}, 2)}},
      {"clamp below a tensor", [](const Inputs& i) { return clamp_max(i[0], i[1]); }, {input({2, 5}), input({5}, 2)}},
  };
});

const AddCases add_ternary_cases([] {
  return std::vector<Case>{
      {"addcmul",
       [](const Inputs& i) { return addcmul(i[0], i[1], i[2], 0.7); },
       {input({2, 3}), input({3}, 2), input({2, 1}, 3)}},
      {"addcdiv",
       [](const Inputs& i) { return addcdiv(i[0], i[1], i[2], 0.7); },
       {input({2, 3}), input({2, 3}, 2), input({3}, 3)}},
      {"lerp",
       [](const Inputs& i) { return lerp(i[0], i[1], i[2]); },
       {input({2, 3}), input({3}, 2), input({2, 3}, 3)}},
      {"lerp number",
       [](const Inputs& i) { return lerp(i[0], i[1], 0.3) * lerp(i[0], i[1], 0.8); },
       {input({2, 3}), input({3}, 2)}},
  };
});

const AddCases add_where_cases([] {
  return std::vector<Case>{
      {"where",
       [](const Inputs& i) { return brigade::where(gt(i[2], 0.5), i[0], i[1]); },
       {input({2, 3}), input({3}, 2), fixed({2, 1}, 3)}},
      {"where broadcast by its condition",
       [](const Inputs& i) { return brigade::where(gt(i[2], 0.5), i[0], i[1]); },
       {input({3}), input({1}, 2), fixed({4, 3}, 3)}},
      {"where number",
       [](const Inputs& i) {
         return brigade::where(gt(i[1], 0.5), i[0], 2.0) * brigade::where(gt(i[1], 0.3), 3.0, i[0]);
       },
       {input({5}), fixed({5}, 3)}},
      {"where of one that is differentiated",
       [](const Inputs& i) { return brigade::where(gt(i[2], 0.5), i[1], i[0]); },
       {input({2, 3}), fixed({3}, 2), fixed({2, 3}, 3)}},
      {"masked_fill",
       [](const Inputs& i) { return masked_fill(i[0], gt(i[1], 0.5), -2.0); },
       {input({2, 3}), fixed({3}, 3)}},
  };
});

}  // namespace
}  // namespace brigade::test::elementwise_cases
