#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::group_norm_cases {

namespace {

const AddCases add_group_norm_cases([] {
  return std::vector<Case>{
      {"group_norm",
       [](const Inputs& i) { return group_norm(i[0], 2, i[1], i[2], 1e-3) * i[3]; },
       {input({2, 4, 3}), input({4}, 2), input({4}, 3), fixed({2, 4, 3}, 4)},
       {.roundings = 4}},
      {"group_norm plain",
       [](const Inputs& i) { return group_norm(i[0], 1) * i[1]; },
       {input({2, 2, 2, 2}), fixed({2, 2, 2, 2}, 4)},
       {.roundings = 4}},
      {"group_norm of rows, gain alone",
       [](const Inputs& i) { return group_norm(i[0], 2, i[1], {}, 1e-3) * i[2]; },
       {input({3, 6}), input({6}, 2), fixed({3, 6}, 4)},
       {.roundings = 4}},
      {"instance_norm",
       [](const Inputs& i) { return instance_norm(i[0], {}, {}, i[1], i[2], true, 0.1, 1e-3) * i[3]; },
       {input({2, 2, 4}), input({2}, 2), input({2}, 3), fixed({2, 2, 4}, 4)},
       {.roundings = 4}},
      {"batch_norm by instance_norm",
       [](const Inputs& i) { return instance_norm(i[0], i[3], i[4], i[1], i[2], false); },
       {input({3, 2, 2}), input({2}, 2), input({2}, 3), fixed({2}, 4), fixed({2}, 5) + 0.5},
       {.roundings = 2, .contiguous_from = 1, .why_contiguous = "parameters and statistics of channels are"}},
  };
});

}  // namespace

}  // namespace brigade::test::group_norm_cases
