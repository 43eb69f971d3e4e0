#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::elementary_cases {

namespace {

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

}  // namespace

}  // namespace brigade::test::elementary_cases
