// Views, joins, parts, indices and rearrangements, for the checks of derivatives.
#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>
#include "../cases.h"

namespace brigade::test::shape_cases {
namespace {

const AddCases add_shape_cases([] {
  return std::vector<Case>{
      {"reshape",
       [](const Inputs& i) {
         return i[0].t().reshape({2, 3}) * i[1];
       },
       {input({2, 3}), fixed({2, 3}, 1)}},
      {"view",
       [](const Inputs& i) {
         return i[0].view({3, -1}) * i[1];
       },
       {input({2, 3}), fixed({3, 2}, 1)},
       {.contiguous_from = 0, .why_contiguous = "what has other strides is for reshape"}},
      {"flatten", [](const Inputs& i) { return i[0].flatten(1) * i[1]; }, {input({2, 3, 2}), fixed({2, 6}, 1)}},
      {"permute",
       [](const Inputs& i) {
         return i[0].permute({2, 0, 1}) * i[1];
       },
       {input({2, 3, 4}), fixed({4, 2, 3}, 1)}},
      {"transpose",
       [](const Inputs& i) { return i[0].transpose(0, 2) * i[1]; },
       {input({2, 3, 4}), fixed({4, 3, 2}, 1)}},
      {"expand",
       [](const Inputs& i) {
         return i[0].expand({4, 2, 3}) * i[1];
       },
       {input({2, 1}), fixed({4, 2, 3}, 1)}},
      {"unsqueeze", [](const Inputs& i) { return i[0].unsqueeze(1) * i[1]; }, {input({2, 3}), fixed({2, 1, 3}, 1)}},
      {"squeeze", [](const Inputs& i) { return i[0].squeeze(1) * i[1]; }, {input({2, 1, 3}), fixed({2, 3}, 1)}},
      {"slice", [](const Inputs& i) { return i[0].slice(1, 1, 6, 2) * i[1]; }, {input({2, 7}), fixed({2, 3}, 1)}},
      {"select", [](const Inputs& i) { return i[0].select(0, -1) * i[1]; }, {input({2, 3}), fixed({3}, 1)}},
      {"clone", [](const Inputs& i) { return i[0].t().contiguous() * i[1]; }, {input({2, 3}), fixed({3, 2}, 1)}},
      {"to", [](const Inputs& i) { return i[0].to(kFloat64) * 2.0; }, {input({3})}},
      {"to another dtype",
       [](const Inputs& i) { return i[0].to(i[0].dtype() == kFloat32 ? kFloat64 : kFloat32) * 2.0; },
       {input({3})},
       {.central_differences = false}},
      {"to the CPU",
       [](const Inputs& i) { return (i[0] * 2.0).cpu() * 2.0; },
       {input({3})},
       {.central_differences = false}},
  };
});

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

const AddCases add_concat_cases([] {
  return std::vector<Case>{
      {"cat",
       [](const Inputs& i) {
         return cat({i[0], i[1]}, 1) * i[2];
       },
       {input({2, 3}), input({2, 2}, 2), fixed({2, 5}, 1)}},
      {"stack",
       [](const Inputs& i) {
         return stack({i[0], i[1], i[0]}, 1) * i[2];
       },
       {input({2, 3}), input({2, 3}, 2), fixed({2, 3, 3}, 1)}},
      {"split",
       [](const Inputs& i) { return split(i[0], 2, 1)[1] * split(i[0], 2, 1)[0].slice(1, 0, 1); },
       {input({2, 3})}},
      {"chunk", [](const Inputs& i) { return chunk(i[0], 2)[1] * 3.0; }, {input({4, 2})}},
  };
});

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
}  // namespace brigade::test::shape_cases
