#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test {

namespace {

const AddCases add_conv_cases([] {
  return std::vector<Case>{
      {"conv2d",
       [](const Inputs& i) { return conv2d(i[0], i[1], i[2]); },
       {input({2, 2, 4, 5}), input({3, 2, 3, 2}, 2), input({3}, 3)}},
      {"conv2d strided",
       [](const Inputs& i) {
         return conv2d(i[0], i[1], {}, {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}});
       },
       {input({1, 2, 5, 5}), input({2, 2, 3, 2}, 2)}},
      {"conv2d groups",
       [](const Inputs& i) { return conv2d(i[0], i[1], i[2], {.groups = 2}); },
       {input({2, 4, 3, 3}), input({2, 2, 2, 2}, 2), input({2}, 3)}},
  };
});

}  // namespace

}  // namespace brigade::test
