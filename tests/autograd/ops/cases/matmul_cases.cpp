#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::matmul_cases {

namespace {

const AddCases add_matmul_cases([] {
  return std::vector<Case>{
      {"matmul", [](const Inputs& i) { return matmul(i[0], i[1]); }, {input({2, 3}), input({3, 4}, 2)}},
      {"matmul batch", [](const Inputs& i) { return matmul(i[0], i[1]); }, {input({2, 1, 2, 3}), input({4, 3, 2}, 2)}},
      {"matmul vectors", [](const Inputs& i) { return matmul(i[0], i[1]); }, {input({3}), input({3}, 2)}},
      {"matmul matrix vector", [](const Inputs& i) { return matmul(i[0], i[1]); }, {input({2, 3}), input({3}, 2)}},
      {"matmul vector batch", [](const Inputs& i) { return matmul(i[0], i[1]); }, {input({3}), input({2, 3, 2}, 2)}},
      {"matmul transposed",
       [](const Inputs& i) { return matmul(i[0].t(), i[1].t()); },
       {input({3, 2}), input({4, 3}, 2)}},
      {"matmul itself", [](const Inputs& i) { return matmul(i[0], i[0]); }, {input({3, 3})}},
      {"mm", [](const Inputs& i) { return mm(i[0], i[1]); }, {input({2, 3}), input({3, 2}, 2)}},
      {"bmm", [](const Inputs& i) { return bmm(i[0], i[1]); }, {input({2, 2, 3}), input({2, 3, 2}, 2)}},
      {"linear",
       [](const Inputs& i) { return linear(i[0], i[1], i[2]); },
       {input({2, 2, 3}), input({4, 3}, 2), input({4}, 3)}},
      {"linear without bias", [](const Inputs& i) { return linear(i[0], i[1]); }, {input({3}), input({4, 3}, 2)}},
      {"linear_relu",
       [](const Inputs& i) { return linear_relu(i[0], i[1], i[2]); },
       {input({2, 2, 3}), input({4, 3}, 2), input({4}, 3)}},
      {"linear_relu without bias",
       [](const Inputs& i) { return linear_relu(i[0], i[1]); },
       {input({3}), input({4, 3}, 2)}},
      {"linear_gelu",
       [](const Inputs& i) { return linear_gelu(i[0], i[1], i[2]); },
       {input({2, 2, 3}), input({4, 3}, 2), input({4}, 3)},
       {.roundings = 2}},  // a sum, and a function of it
      {"linear_gelu without bias",
       [](const Inputs& i) { return linear_gelu(i[0], i[1]); },
       {input({3}), input({4, 3}, 2)},
       {.roundings = 2}},
  };
});

}  // namespace

}  // namespace brigade::test::matmul_cases
