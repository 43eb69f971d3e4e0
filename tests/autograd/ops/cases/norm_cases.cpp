#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

#include <limits>

namespace brigade::test::norm_cases {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const AddCases add_norm_cases([] {
  return std::vector<Case>{
      {"norm", [](const Inputs& i) { return norm(i[0]); }, {input({3, 4})}},
      {"norm dims",
       [](const Inputs& i) {
         return norm(i[0], 2, {0, 2}, true);
       },
       {input({2, 3, 4})}},
      {"norm 0", [](const Inputs& i) { return norm(i[0], 0, {1}) + sum(i[0]); }, {input({3, 4})}},
      {"norm 1", [](const Inputs& i) { return norm(i[0], 1, {1}); }, {input({3, 4})}},
      {"norm 3", [](const Inputs& i) { return norm(i[0], 3, {0}); }, {input({3, 4})}, {.roundings = 3}},
      {"norm 1.5", [](const Inputs& i) { return norm(i[0], 1.5, {-1}); }, {input({3, 4})}, {.roundings = 3}},
      {"norm 0.5", [](const Inputs& i) { return norm(i[0], 0.5, {-1}); }, {input({3, 4})}, {.roundings = 3}},
      {"norm -2", [](const Inputs& i) { return norm(i[0], -2, {-1}); }, {input({3, 4})}, {.roundings = 3}},
      {"norm infinite", [](const Inputs& i) { return norm(i[0], kInfinity, {1}); }, {input({3, 4})}},
      {"norm -infinite", [](const Inputs& i) { return norm(i[0], -kInfinity, {1}, true); }, {input({3, 4})}},
      {"vector_norm",
       [](const Inputs& i) {
         return vector_norm(i[0], 2, {1, 2});
       },
       {input({2, 3, 4})}},
      {"matrix_norm", [](const Inputs& i) { return matrix_norm(i[0]); }, {input({2, 3, 4})}},
      {"normalize", [](const Inputs& i) { return normalize(i[0]); }, {input({2, 3})}, {.roundings = 2}},
      {"normalize 1", [](const Inputs& i) { return normalize(i[0], 1, 0); }, {input({4, 2})}, {.roundings = 2}},
      {"normalize, small", [](const Inputs& i) { return normalize(i[0], 2, 0, 2.5); }, {input({4, 3})}},
      {"cosine_similarity",
       [](const Inputs& i) { return cosine_similarity(i[0], i[1]); },
       {input({3, 4}), input({3, 4}, 2)},
       {.roundings = 2}},
      {"cosine_similarity broadcast",
       [](const Inputs& i) { return cosine_similarity(i[0], i[1], -1); },
       {input({2, 1, 4}), input({3, 4}, 2)},
       {.roundings = 2}},
  };
});

}  // namespace

}  // namespace brigade::test::norm_cases
