// Copies between layouts that are dense along different dimensions (kernels/cuda/detail/transpose.h): bit-identical to
// the CPU, and through tiles if both dimensions are long enough.
#include "on_device.h"

#include <brigade/core/cuda/error.h>

#include <cstring>

namespace brigade::test::transpose_test {
using namespace brigade::kernels;

namespace {

// Both tensors must be dense.
bool same_bits(const Tensor& found, const Tensor& expected) {
  const Tensor here = on_cpu(found);
  return here.sizes() == expected.sizes() && here.dtype() == expected.dtype() &&
         std::memcmp(here.raw_data(), expected.raw_data(), static_cast<size_t>(expected.nbytes())) == 0;
}

// Reads from an error message which kernel was launched last.
bool was_transposed() {
  try {
    brigade::cuda::check(cudaErrorInvalidValue, "a question");
  } catch (const brigade::cuda::CudaError& error) {
    return std::string(error.what()).find("launched last was copy_transposed") != std::string::npos;
  }
  return false;
}

// clone(x) of a device tensor; checks whether tiles were used.
Tensor transposed_clone(const Tensor& x, bool through_tiles = true) {
  brigade::cuda::note_launch("nothing", std::source_location::current());
  const Tensor result = clone(x);
  CHECK(was_transposed() == through_tiles);
  return result;
}

struct Case {
  Shape sizes, order;
};

// The inverse permutation.
Shape inverse(const Shape& order) {
  Shape result = order;
  for (int d = 0; d < order.size(); ++d)
    result[static_cast<int>(order[d])] = d;
  return result;
}

}  // namespace

TEST_CASE("permuted tensors are copied through tiles, in every dtype, and back into a permuted target") {
  const std::vector<Case> cases{
      {{16, 16}, {1, 0}},                   // part of a tile
      {{32, 64}, {1, 0}},                   // whole tiles of 4 and 8 bytes
      {{64, 128}, {1, 0}},                  // of 1 and 2
      {{131, 67}, {1, 0}},                  // several, and a remainder
      {{17, 300}, {1, 0}},                  // wider than high
      {{2, 19, 5, 7}, {0, 2, 3, 1}},        // NCHW to NHWC
      {{2, 5, 7, 19}, {0, 3, 1, 2}},        // and back
      {{2, 18, 3, 21}, {0, 2, 3, 1}},       // attention keys, transposed per head
      {{17, 3, 20}, {2, 1, 0}},             // the middle dimension becomes a batch
      {{2, 17, 1, 3, 18}, {3, 4, 0, 2, 1}}  // two batch dimensions, reordered
  };
  for (const DType dtype : kAllDTypes) {
    CAPTURE(name(dtype));
    for (const Case& each : cases) {
      CAPTURE(to_string(each.sizes));
      const Tensor x = numbers(each.sizes, dtype);
      const Tensor expected = clone(view::permute(x, each.order));
      CHECK(same_bits(transposed_clone(view::permute(on_device(x), each.order)), expected));

      const Tensor target = empty(expected.sizes(), {dtype, kDevice});
      const Tensor source = on_device(x);
      brigade::cuda::note_launch("nothing", std::source_location::current());
      copy(view::permute(target, inverse(each.order)), source);
      CHECK(was_transposed());
      CHECK(same_bits(target, expected));
    }
  }
}

TEST_CASE("short, single, empty, dense and cast copies do not go through tiles, and are right as well") {
  const Shape turn{1, 0};
  for (const Shape& sizes : std::vector<Shape>{{15, 64}, {64, 15}, {1, 64}, {64, 1}, {1, 1}, {0, 64}, {64, 0}}) {
    CAPTURE(to_string(sizes));
    for (const DType dtype : {kFloat64, kFloat32, kBFloat16, kUInt8}) {
      const Tensor x = numbers(sizes, dtype);
      CHECK(same_bits(transposed_clone(view::permute(on_device(x), turn), false), clone(view::permute(x, turn))));
    }
  }
  const Tensor x = numbers({20, 40}, kFloat32);
  CHECK(same_bits(transposed_clone(on_device(x), false), x));
  // Dense along the same dimension on both sides.
  const auto every_other = [](const Tensor& all) { return view::slice(all, 0, 0, 20, 2); };
  CHECK(same_bits(transposed_clone(every_other(on_device(x)), false), clone(every_other(x))));
  // The source is dense along no dimension.
  const auto gaps = [](const Tensor& all) { return view::transpose(view::slice(all, 1, 0, 40, 2), 0, 1); };
  CHECK(same_bits(transposed_clone(gaps(on_device(x)), false), clone(gaps(x))));
  CHECK(same_bits(cast(view::transpose(on_device(x), 0, 1), kFloat16), cast(view::transpose(x, 0, 1), kFloat16)));
}

TEST_CASE("views with offsets and gaps, and broadcast batches, are transposed without touching what is around them") {
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kUInt8}) {
    CAPTURE(name(dtype));
    const Tensor x = numbers({5, 70, 90}, dtype);
    const auto part = [](const Tensor& all) {
      return view::transpose(view::slice(view::slice(view::slice(all, 0, 1, 5, 2), 1, 3, 69), 2, 1, 88), 1, 2);
    };
    CHECK(same_bits(transposed_clone(part(on_device(x))), clone(part(x))));

    // Copies into a part of a larger tensor.
    const Tensor values = numbers({2, 87, 66}, dtype, 2);
    const Tensor here = clone(x);
    const Tensor there = on_device(x);
    const Tensor source = on_device(values);
    copy(part(here), values);
    brigade::cuda::note_launch("nothing", std::source_location::current());
    copy(part(there), source);
    CHECK(was_transposed());
    CHECK(same_bits(there, here));

    const auto repeated = [](const Tensor& all) {
      return view::expand(view::transpose(view::select(all, 0, 2), 0, 1), {3, 90, 70});
    };
    CHECK(same_bits(transposed_clone(repeated(on_device(x))), clone(repeated(x))));
  }
}

TEST_CASE("a transposed copy keeps the bits of every NaN") {
  std::vector<float> numbers(20 * 33);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const uint32_t bits = 0x7f80'0001U + static_cast<uint32_t>(i) * 5077U;  // signaling and quiet NaNs
    std::memcpy(&numbers[i], &bits, sizeof bits);
  }
  const Tensor x = empty({20, 33}, kFloat32);
  std::memcpy(x.raw_data(), numbers.data(), static_cast<size_t>(x.nbytes()));
  const Tensor found = on_cpu(transposed_clone(view::transpose(on_device(x), 0, 1)));
  const auto* const from = static_cast<const uint32_t*>(x.raw_data());
  const auto* const to = static_cast<const uint32_t*>(found.raw_data());
  int wrong = 0;
  for (int r = 0; r < 20; ++r) {
    for (int c = 0; c < 33; ++c)
      wrong += to[c * 20 + r] != from[r * 33 + c];
  }
  CHECK(wrong == 0);
}

}  // namespace brigade::test::transpose_test
