#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::gather_cases {

namespace {

// Indices below `count`.
Tensor places(const Shape& sizes, int64_t count, int64_t step = 3) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < sizes.numel(); ++i)
    values.push_back((i * step + i / 5) % count);
  return tensor(values, sizes);
}

const AddCases add_gather_cases([] {
  const Tensor columns = tensor(std::vector<int64_t>{2, 0, 3, 1, 2, 0}, {2, 3});  // no index repeats along dimension 1
  const Tensor mask = tensor<bool>({true, false, true, false, true, true}).reshape({2, 3});
  return std::vector<Case>{
      {"gather",
       [](const Inputs& i) { return gather(i[0], 1, i[1]) * i[2]; },
       {input({3, 4, 2}), places({3, 6, 2}, 4), fixed({3, 6, 2}, 1)}},
      {"gather of a part",
       [](const Inputs& i) { return gather(i[0], -1, i[1]) * i[2]; },
       {input({3, 4}), places({2, 5}, 4), fixed({2, 5}, 1)}},
      {"take_along_dim",
       [](const Inputs& i) { return take_along_dim(i[0], i[1], 0) * i[2]; },
       {input({3, 4}), places({2, 1}, 3), fixed({2, 4}, 1)}},
      {"take_along_dim as a row",
       [](const Inputs& i) { return take_along_dim(i[0], i[1]) * i[2]; },
       {input({3, 4}), places({2, 2}, 12, 7), fixed({4}, 1)}},
      {"scatter",
       [](const Inputs& i) { return scatter(i[0], 1, i[1], i[2]) * i[3]; },
       {input({2, 4}), columns, input({2, 3}, 2), fixed({2, 4}, 1)}},
      {"scatter of a part",
       [](const Inputs& i) { return scatter(i[0], 1, i[1], i[2]) * i[3]; },
       {input({3, 4}), columns, input({4, 5}, 2), fixed({3, 4}, 1)}},
      {"scatter of a number",
       [](const Inputs& i) { return scatter(i[0], 1, i[1], 0.25) * i[2]; },
       {input({2, 4}), places({2, 3}, 4), fixed({2, 4}, 1)}},
      {"scatter_add",
       [](const Inputs& i) { return scatter_add(i[0], 0, i[1], i[2]) * i[3]; },
       {input({3, 2}), places({5, 2}, 3), input({5, 2}, 2), fixed({3, 2}, 1)},
       {.roundings = 2}},
      {"scatter_add of a part",
       [](const Inputs& i) { return scatter_add(i[0], 1, i[1], i[2]) * i[3]; },
       {input({3, 3}), places({2, 5}, 3), input({4, 6}, 2), fixed({3, 3}, 1)},
       {.roundings = 2}},
      {"index_add",
       [](const Inputs& i) { return index_add(i[0], 1, i[1], i[2], -0.5) * i[3]; },
       {input({2, 3, 2}), tensor<int64_t>({1, 2, 1, 1}), input({2, 4, 2}, 2), fixed({2, 3, 2}, 1)},
       {.roundings = 2}},
      {"index_copy",
       [](const Inputs& i) { return index_copy(i[0], 1, i[1], i[2]) * i[3]; },
       {input({2, 4, 2}), tensor<int64_t>({3, 1}), input({2, 2, 2}, 2), fixed({2, 4, 2}, 1)}},
      {"index_fill",
       [](const Inputs& i) { return index_fill(i[0], 0, i[1], 2) * i[2]; },
       {input({4, 2}), tensor<int64_t>({3, 1, 3}), fixed({4, 2}, 1)}},
      {"masked_select",
       [](const Inputs& i) { return masked_select(i[0], i[1]) * i[2]; },
       {input({2, 2, 3}), mask, fixed({8}, 1)}},
      {"masked_select of a stretched tensor",
       [](const Inputs& i) { return masked_select(i[0], i[1]) * i[2]; },
       {input({3}), mask, fixed({4}, 1)}},
  };
});

}  // namespace

}  // namespace brigade::test::gather_cases
