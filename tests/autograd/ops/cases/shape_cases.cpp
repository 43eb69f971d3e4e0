#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::shape_cases {

namespace {

const AddCases add_shape_cases([] {
  return std::vector<Case>{
      {"reshape",
       [](const Inputs& i) {
         return i[0].t().reshape({2, 3}) * i[1];
       },
       {input({2, 3}), fixed({2, 3}, 1)}},
      {"view",
       [](const Inputs& i) {
         return i[0].view({3, -1}) * i[1];
       },
       {input({2, 3}), fixed({3, 2}, 1)},
       {.contiguous_from = 0, .why_contiguous = "what has other strides is for reshape"}},
      {"flatten", [](const Inputs& i) { return i[0].flatten(1) * i[1]; }, {input({2, 3, 2}), fixed({2, 6}, 1)}},
      {"permute",
       [](const Inputs& i) {
         return i[0].permute({2, 0, 1}) * i[1];
       },
       {input({2, 3, 4}), fixed({4, 2, 3}, 1)}},
      {"transpose",
       [](const Inputs& i) { return i[0].transpose(0, 2) * i[1]; },
       {input({2, 3, 4}), fixed({4, 3, 2}, 1)}},
      {"expand",
       [](const Inputs& i) {
         return i[0].expand({4, 2, 3}) * i[1];
       },
       {input({2, 1}), fixed({4, 2, 3}, 1)}},
      {"unsqueeze", [](const Inputs& i) { return i[0].unsqueeze(1) * i[1]; }, {input({2, 3}), fixed({2, 1, 3}, 1)}},
      {"squeeze", [](const Inputs& i) { return i[0].squeeze(1) * i[1]; }, {input({2, 1, 3}), fixed({2, 3}, 1)}},
      {"slice", [](const Inputs& i) { return i[0].slice(1, 1, 6, 2) * i[1]; }, {input({2, 7}), fixed({2, 3}, 1)}},
      {"select", [](const Inputs& i) { return i[0].select(0, -1) * i[1]; }, {input({2, 3}), fixed({3}, 1)}},
      {"clone", [](const Inputs& i) { return i[0].t().contiguous() * i[1]; }, {input({2, 3}), fixed({3, 2}, 1)}},
      {"to", [](const Inputs& i) { return i[0].to(kFloat64) * 2.0; }, {input({3})}},
      {"to another dtype",
       [](const Inputs& i) { return i[0].to(i[0].dtype() == kFloat32 ? kFloat64 : kFloat32) * 2.0; },
       {input({3})},
       {.central_differences = false}},
      {"to the CPU",
       [](const Inputs& i) { return (i[0] * 2.0).cpu() * 2.0; },
       {input({3})},
       {.central_differences = false}},
  };
});

}  // namespace

}  // namespace brigade::test::shape_cases
