#include "../cases.h"

#include <brigade/autograd/functional.h>

namespace brigade::test::pad_cases {

namespace {

const AddCases add_pad_cases([] {
  return std::vector<Case>{
      {"pad",
       [](const Inputs& i) {
         return pad(i[0], {1, 2, 3, 0}, PadMode::Constant, 0.5) * i[1];
       },
       {input({2, 3}), fixed({5, 6}, 1)}},
      {"pad that takes away",
       [](const Inputs& i) {
         return pad(i[0], {-1, 2, 0, -1}) * i[1];
       },
       {input({3, 4}), fixed({2, 5}, 1)}},
      {"pad_reflect",
       [](const Inputs& i) {
         return pad(i[0], {2, 3, 1, 0}, PadMode::Reflect) * i[1];
       },
       {input({2, 2, 4}), fixed({2, 3, 9}, 1)}},
      {"pad_reflect that takes away",
       [](const Inputs& i) {
         return pad(i[0], {-1, 2}, PadMode::Reflect) * i[1];
       },
       {input({2, 4}), fixed({2, 5}, 1)}},
      {"pad_replicate",
       [](const Inputs& i) {
         return pad(i[0], {2, 4, 1, 1}, PadMode::Replicate) * i[1];
       },
       {input({2, 1, 3}), fixed({2, 3, 9}, 1)}},
      {"pad_circular",
       [](const Inputs& i) {
         return pad(i[0], {2, 3, 0, 1}, PadMode::Circular) * i[1];
       },
       {input({2, 2, 3}), fixed({2, 3, 8}, 1)}},
  };
});

}  // namespace

}  // namespace brigade::test::pad_cases
