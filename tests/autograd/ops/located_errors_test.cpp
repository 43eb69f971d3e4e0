// Errors about dimensions, shapes and indices name the operation and the line of the user's call.
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

namespace brigade::test::located_errors_test {
namespace {

struct Call {
  const char* op;
  std::function<void(const Tensor& x)> call;  // takes a float32 tensor [2, 3]
};

const Tensor kIndex = tensor<int64_t>({0, 1});

// One row per source line, so the lines named by the errors must increase.
const uint32_t kDimensionsAbove = __LINE__ + 1;
const std::vector<Call> kDimensions{
    {"flatten", [](const Tensor& x) { x.flatten(2); }},
    {"flatten", [](const Tensor& x) { x.flatten(1, 0); }},
    {"permute",
     [](const Tensor& x) {
       x.permute({0, 2});
     }},
    {"permute", [](const Tensor& x) { x.permute({0}); }},
    {"permute",
     [](const Tensor& x) {
       x.permute({0, 0});
     }},
    {"transpose", [](const Tensor& x) { x.transpose(0, 2); }},
    {"swapaxes", [](const Tensor& x) { swapaxes(x, 0, 2); }},
    {"swapdims", [](const Tensor& x) { swapdims(x, -3, 0); }},
    {"movedim", [](const Tensor& x) { movedim(x, 2, 0); }},
    {"unsqueeze", [](const Tensor& x) { x.unsqueeze(3); }},
    {"squeeze", [](const Tensor& x) { x.squeeze(2); }},
    {"slice", [](const Tensor& x) { x.slice(2, 0, 1); }},
    {"narrow", [](const Tensor& x) { x.narrow(2, 0, 1); }},
    {"select", [](const Tensor& x) { x.select(-3, 0); }},
    {"diagonal", [](const Tensor& x) { diagonal(x, 0, 0, 2); }},
    {"diag_embed", [](const Tensor& x) { diag_embed(x, 0, 0, 3); }},
    {"unbind", [](const Tensor& x) { unbind(x, 2); }},
    {"split", [](const Tensor& x) { split(x, 1, 2); }},
    {"chunk", [](const Tensor& x) { chunk(x, 1, 2); }},
    {"cat",
     [](const Tensor& x) {
       cat({x, x}, 2);
     }},
    {"stack",
     [](const Tensor& x) {
       stack({x, x}, 3);
     }},
    {"flip", [](const Tensor& x) { flip(x, {2}); }},
    {"roll", [](const Tensor& x) { roll(x, {1}, {2}); }},
    {"repeat_interleave", [](const Tensor& x) { repeat_interleave(x, 2, 2); }},
    {"index_select", [](const Tensor& x) { index_select(x, 2, kIndex); }},
    {"gather", [](const Tensor& x) { gather(x, 2, kIndex); }},
    {"take_along_dim",
     [](const Tensor& x) {
       take_along_dim(x, zeros({2, 3}, kInt64), 2);
     }},
    {"scatter", [](const Tensor& x) { scatter(x, 2, kIndex, 1.0); }},
    {"scatter", [](const Tensor& x) { scatter(x, 2, kIndex, x); }},
    {"scatter_add", [](const Tensor& x) { scatter_add(x, 2, kIndex, x); }},
    {"index_add", [](const Tensor& x) { index_add(x, 2, kIndex, x); }},
    {"index_copy", [](const Tensor& x) { index_copy(x, 2, kIndex, x); }},
    {"index_fill", [](const Tensor& x) { index_fill(x, 2, kIndex, 1.0); }},
    {"sum", [](const Tensor& x) { x.sum({2}); }},
    {"sum",
     [](const Tensor& x) {
       x.sum({0, 0});
     }},
    {"mean", [](const Tensor& x) { x.mean({-3}); }},
    {"prod", [](const Tensor& x) { prod(x, {2}); }},
    {"logsumexp", [](const Tensor& x) { logsumexp(x, {2}); }},
    {"any", [](const Tensor& x) { any(x, {2}); }},
    {"all", [](const Tensor& x) { all(x, {2}); }},
    {"count_nonzero", [](const Tensor& x) { count_nonzero(x, {2}); }},
    {"var", [](const Tensor& x) { var(x, {2}); }},
    {"std", [](const Tensor& x) { brigade::std(x, {2}); }},
    {"var_mean", [](const Tensor& x) { var_mean(x, {2}); }},
    {"std_mean", [](const Tensor& x) { std_mean(x, {2}); }},
    {"amax", [](const Tensor& x) { amax(x, {2}); }},
    {"amin", [](const Tensor& x) { amin(x, {2}); }},
    {"max", [](const Tensor& x) { brigade::max(x, 2); }},
    {"min", [](const Tensor& x) { brigade::min(x, 2); }},
    {"argmax", [](const Tensor& x) { argmax(x, 2); }},
    {"argmin", [](const Tensor& x) { argmin(x, 2); }},
    {"norm", [](const Tensor& x) { norm(x, 2, {2}); }},
    {"vector_norm", [](const Tensor& x) { vector_norm(x, 2, {2}); }},
    {"matrix_norm",
     [](const Tensor& x) {
       matrix_norm(x, {0, 2});
     }},
    {"cosine_similarity", [](const Tensor& x) { cosine_similarity(x, x, 2); }},
    {"softmax", [](const Tensor& x) { softmax(x, 2); }},
    {"log_softmax", [](const Tensor& x) { log_softmax(x, 2); }},
    {"cumsum", [](const Tensor& x) { cumsum(x, 2); }},
    {"cumprod", [](const Tensor& x) { cumprod(x, 2); }},
    {"logcumsumexp", [](const Tensor& x) { logcumsumexp(x, 2); }},
    {"linear_recurrence", [](const Tensor& x) { linear_recurrence(x, x, 2); }},
    {"sort", [](const Tensor& x) { sort(x, 2); }},
    {"argsort", [](const Tensor& x) { argsort(x, 2); }},
    {"topk", [](const Tensor& x) { topk(x, 1, 2); }},
    {"glu", [](const Tensor& x) { glu(x, 2); }},
};
const uint32_t kDimensionsBelow = __LINE__ - 1;

const uint32_t kShapesAbove = __LINE__ + 1;
const std::vector<Call> kShapes{
    {"view",
     [](const Tensor& x) {
       x.view({4, 2});
     }},
    {"view",
     [](const Tensor& x) {
       x.view({-1, -1});
     }},
    {"view",
     [](const Tensor& x) {
       x.view({-2, 3});
     }},
    {"view", [](const Tensor& x) { x.transpose(0, 1).view({6}); }},
    {"reshape",
     [](const Tensor& x) {
       x.reshape({4, 2});
     }},
    {"reshape",
     [](const Tensor& x) {
       x.reshape({-1, 4});
     }},
    {"expand",
     [](const Tensor& x) {
       x.expand({2, 4});
     }},
    {"expand", [](const Tensor& x) { x.expand({3}); }},
    {"repeat", [](const Tensor& x) { repeat(x, {2}); }},
    {"cat",
     [](const Tensor& x) {
       cat({x, zeros({3, 2})});
     }},
    {"stack",
     [](const Tensor& x) {
       stack({x, zeros({3, 2})});
     }},
    {"sum_to", [](const Tensor& x) { sum_to(x, {2}); }},
};
const uint32_t kShapesBelow = __LINE__ - 1;

const uint32_t kIndicesAbove = __LINE__ + 1;
const std::vector<Call> kIndices{
    {"select", [](const Tensor& x) { x.select(0, 2); }},
    {"select", [](const Tensor& x) { x.select(1, -4); }},
    {"select", [](const Tensor& x) { x.sum().select(0, 0); }},
    {"slice", [](const Tensor& x) { x.sum().slice(0, 0, 1); }},
    {"slice", [](const Tensor& x) { x.slice(0, 0, 1, 0); }},
    {"narrow", [](const Tensor& x) { x.narrow(1, 2, 2); }},
    {"index_select", [](const Tensor& x) { index_select(x, 0, tensor<int64_t>({2})); }},
    {"gather",
     [](const Tensor& x) {
       gather(x, 0, zeros({2, 4}, kInt64));
     }},
    {"split", [](const Tensor& x) { split(x, 0); }},
    {"chunk", [](const Tensor& x) { chunk(x, 0); }},
    {"topk", [](const Tensor& x) { topk(x, 4); }},
};
const uint32_t kIndicesBelow = __LINE__ - 1;

// The line that the error names.
uint32_t line_of_error(const Call& call) {
  try {
    call.call(ones({2, 3}));
  } catch (const Error& error) {
    const std::string message = error.what();
    CAPTURE(message);
    CHECK(message.find(call.op) != std::string::npos);
    CHECK(std::string(error.where().file_name()) == SourceLocation::current().file_name());
    CHECK(message.find("located_errors_test.cpp:" + std::to_string(error.where().line())) != std::string::npos);
    return error.where().line();
  }
  FAIL("was accepted");
  return 0;
}

void each_says_where(const std::vector<Call>& calls, uint32_t above, uint32_t below) {
  uint32_t line = above;
  for (const Call& call : calls) {
    CAPTURE(std::string(call.op));
    const uint32_t next = line_of_error(call);
    CHECK(next > line);
    CHECK(next < below);
    line = next;
  }
}

}  // namespace

TEST_CASE("a dimension out of range names the operation and the user's line") {
  each_says_where(kDimensions, kDimensionsAbove, kDimensionsBelow);
}

TEST_CASE("a shape that does not fit names the operation and the user's line") {
  each_says_where(kShapes, kShapesAbove, kShapesBelow);
}

TEST_CASE("an index out of range names the operation and the user's line") {
  each_says_where(kIndices, kIndicesAbove, kIndicesBelow);
}

TEST_CASE("what an operation is made of says the name of the one that was called") {
  CHECK_THROWS_WITH_AS(unbind(ones({2, 3}), 2), doctest::Contains("unbind: dimension out of range: expected -2 to 1"),
                       IndexError);
  CHECK_THROWS_WITH_AS(swapaxes(ones({2, 3}), 0, 5), doctest::Contains("swapaxes: transpose: dimension out of range"),
                       IndexError);
}

}  // namespace brigade::test::located_errors_test
