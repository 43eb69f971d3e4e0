#include "../cases.h"

#include <brigade/autograd/functional.h>

namespace brigade::test::sort_cases {

namespace {

const AddCases add_sort_cases([] {
  return std::vector<Case>{
      {"sort", [](const Inputs& i) { return sort(i[0]).values * i[1]; }, {input({3, 4}), fixed({3, 4}, 1)}},
      {"sort descending",
       [](const Inputs& i) { return sort(i[0], 1, true).values * i[1]; },
       {input({2, 5, 2}), fixed({2, 5, 2}, 1)}},
      {"topk", [](const Inputs& i) { return topk(i[0], 3).values * i[1]; }, {input({2, 6}), fixed({2, 3}, 1)}},
      {"topk smallest",
       [](const Inputs& i) { return topk(i[0], 2, 0, false).values * i[1]; },
       {input({5, 3}), fixed({2, 3}, 1)}},
  };
});

}  // namespace

}  // namespace brigade::test::sort_cases
