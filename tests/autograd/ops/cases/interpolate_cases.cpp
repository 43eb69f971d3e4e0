#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test {

namespace {

const AddCases add_interpolate_cases([] {
  return std::vector<Case>{
      {"interpolate nearest",
       [](const Inputs& i) {
         return interpolate(i[0], {.size = {{5, 2}}});
       },
       {input({2, 2, 3, 4})}},
      {"interpolate bilinear",
       [](const Inputs& i) {
         return interpolate(i[0], {.scale_factor = {{2.3, 0.7}}, .mode = InterpolateMode::Bilinear});
       },
       {input({2, 1, 3, 4})}},
      {"interpolate aligned",
       [](const Inputs& i) {
         return interpolate(i[0], {.size = {{1, 7}}, .mode = InterpolateMode::Bilinear, .align_corners = true});
       },
       {input({1, 2, 4, 3})}},
  };
});

}  // namespace

}  // namespace brigade::test
