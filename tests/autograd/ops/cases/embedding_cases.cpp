#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::embedding_cases {

namespace {

const AddCases add_embedding_cases([] {
  const Tensor classes = tensor<int64_t>({2, 0, 1, 2});
  const Tensor dense = tensor(std::vector<int64_t>{0, 2, 1, 1, 0, 2, 2, 1}, {2, 2, 2});
  return std::vector<Case>{
      {"embedding", [](const Inputs& i) { return embedding(i[1], i[0]); }, {input({4, 3}), classes}},
      {"embedding dense", [](const Inputs& i) { return embedding(i[1], i[0]); }, {input({3, 2}), dense}},
      {"embedding with padding",
       [](const Inputs& i) { return embedding(i[1], i[0], 1) * i[2]; },
       {input({4, 3}), tensor<int64_t>({2, 0, 3, 2}), fixed({4, 3}, 1)}},
      {"index_select",
       [](const Inputs& i) { return index_select(i[0], 0, i[1]) * i[2]; },
       {input({3, 2}), tensor<int64_t>({1, 1, 0}), fixed({3, 2}, 1)}},
      {"index_select inner",
       [](const Inputs& i) { return index_select(i[0], 1, i[1]) * i[2]; },
       {input({3, 3}), tensor<int64_t>({2, 0}), fixed({3, 2}, 1)}},
  };
});

}  // namespace

}  // namespace brigade::test::embedding_cases
