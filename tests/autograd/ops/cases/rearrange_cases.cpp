#include "../cases.h"

#include <brigade/autograd/functional.h>

namespace brigade::test::rearrange_cases {

namespace {

const AddCases add_rearrange_cases([] {
  return std::vector<Case>{
      {"flip",
       [](const Inputs& i) {
         return flip(i[0], {0, -1}) * i[1];
       },
       {input({2, 3, 4}), fixed({2, 3, 4}, 1)}},
      {"roll", [](const Inputs& i) { return roll(i[0], {4}, {1}) * i[1]; }, {input({2, 3}), fixed({2, 3}, 1)}},
      {"roll two dimensions",
       [](const Inputs& i) {
         return roll(i[0], {-1, 2}, {0, 2}) * i[1];
       },
       {input({2, 3, 4}), fixed({2, 3, 4}, 1)}},
      {"roll as a row", [](const Inputs& i) { return roll(i[0], {2}) * i[1]; }, {input({2, 3}), fixed({2, 3}, 1)}},
      {"repeat",
       [](const Inputs& i) {
         return repeat(i[0], {2, 3, 2}) * i[1];
       },
       {input({2, 3}), fixed({2, 6, 6}, 1)}},
      {"tile", [](const Inputs& i) { return tile(i[0], {2}) * i[1]; }, {input({2, 1, 3}), fixed({2, 1, 6}, 1)}},
      {"repeat_interleave",
       [](const Inputs& i) { return repeat_interleave(i[0], 3, 1) * i[1]; },
       {input({2, 3}), fixed({2, 9}, 1)}},
      {"repeat_interleave as a row",
       [](const Inputs& i) { return repeat_interleave(i[0], 2) * i[1]; },
       {input({2, 3}), fixed({12}, 1)}},
      {"movedim",
       [](const Inputs& i) {
         return movedim(i[0], {0, 1}, {-1, 0}) * i[1];
       },
       {input({2, 3, 4}), fixed({3, 4, 2}, 1)}},
      {"swapaxes",
       [](const Inputs& i) { return swapaxes(i[0], 0, 2) * swapdims(i[0], 0, 2) * i[1]; },
       {input({2, 3, 4}), fixed({4, 3, 2}, 1)}},
      {"unbind",
       [](const Inputs& i) {
         const auto parts = unbind(i[0], 1);
         return parts[0] * parts[2] * i[1];
       },
       {input({2, 3, 2}), fixed({2, 2}, 1)}},
      {"diagonal", [](const Inputs& i) { return diagonal(i[0]) * i[1]; }, {input({3, 3}), fixed({3}, 1)}},
      {"diagonal of matrices beside it",
       [](const Inputs& i) { return diagonal(i[0], 1, 2, 0) * diagonal(i[0], 0, 2, 0).slice(1, 1, 3) * i[1]; },
       {input({3, 2, 4}), fixed({2, 2}, 1)}},
      {"diag_embed",
       [](const Inputs& i) { return diag_embed(i[0], -1, 0, 2) * i[1]; },
       {input({2, 3}), fixed({4, 2, 4}, 1)}},
      {"tril", [](const Inputs& i) { return tril(i[0]) * i[1]; }, {input({2, 3, 4}), fixed({2, 3, 4}, 1)}},
      {"triu", [](const Inputs& i) { return triu(i[0], -1) * i[1]; }, {input({4, 3}), fixed({4, 3}, 1)}},
  };
});

}  // namespace

}  // namespace brigade::test::rearrange_cases
