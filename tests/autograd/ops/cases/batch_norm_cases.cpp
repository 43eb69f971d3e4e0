#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::batch_norm_cases {

namespace {

const AddCases add_batch_norm_cases([] {
  return std::vector<Case>{
      {"batch_norm",
       [](const Inputs& i) { return batch_norm(i[0], i[1], i[2], {}, {}, true); },
       {input({3, 2, 2, 2}), input({2}, 2), input({2}, 3)},
       {.roundings = 2, .contiguous_from = 1, .why_contiguous = "parameters and statistics of channels are"}},
      {"batch_norm eval",
       [](const Inputs& i) { return batch_norm(i[0], i[1], i[2], i[3], i[4], false); },
       {input({3, 2, 2}), input({2}, 2), input({2}, 3), fixed({2}, 4), fixed({2}, 5) + 0.5},
       {.roundings = 2, .contiguous_from = 1, .why_contiguous = "parameters and statistics of channels are"}},
  };
});

}  // namespace

}  // namespace brigade::test::batch_norm_cases
