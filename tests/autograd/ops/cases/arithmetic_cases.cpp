#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::arithmetic_cases {

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

}  // namespace

}  // namespace brigade::test::arithmetic_cases
