// Bucket kernels: CUDA, compared with the CPU's.
#include "on_device.h"

#include <brigade/kernels/bucket.h>

#include <limits>

namespace brigade::test::bucket_test {
using namespace brigade::kernels;

namespace {

// Slots at 64-byte boundaries, as in a bucket, or packed so that few of them are aligned.
struct Slots {
  std::vector<int64_t> numels, offsets;
  int64_t total = 0;
  Slots(std::vector<int64_t> sizes, int64_t boundary) : numels(std::move(sizes)) {
    for (const int64_t numel : numels) {
      offsets.push_back(total);
      total += (numel + boundary - 1) / boundary * boundary;
    }
  }
};

// One huge slot, several of about one piece, tiny ones, empty ones.
std::vector<int64_t> mixed_sizes() { return {20000, 1, 0, 8192, 8193, 7, 8191, 3, 64, 0, 5000, 2}; }
// More slots than one launch takes.
std::vector<int64_t> many_sizes() {
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < 300; ++i)
    sizes.push_back(i % 37);
  return sizes;
}

}  // namespace

TEST_CASE("flatten and unflatten between all pairs of dtypes, aligned and packed") {
  for (const DType flat_dtype : kFloatingDTypes) {
    for (const DType dtype : kFloatingDTypes) {
      CAPTURE(name(flat_dtype));
      CAPTURE(name(dtype));
      for (const bool aligned : {true, false}) {
        CAPTURE(aligned);
        const Slots slots(mixed_sizes(), aligned ? 32 : 1);
        std::vector<Tensor> here, there;
        for (size_t i = 0; i < slots.numels.size(); ++i) {
          here.push_back(i == 5 ? Tensor() : numbers({slots.numels[i]}, dtype, i));
          there.push_back(i == 5 ? Tensor() : on_device(here[i]));
        }
        const Tensor start = numbers({slots.total + 3}, flat_dtype, 99);
        const Tensor flat = clone(start);
        const Tensor device_flat = on_device(start);
        bucket_flatten(flat, here, slots.offsets, 0.3);
        bucket_flatten(device_flat, there, slots.offsets, 0.3);
        // No fused operations here: a single product, rounded once.
        CHECK(difference(device_flat, flat) == 0);

        const Tensor flags = zeros({static_cast<int64_t>(slots.numels.size())}, flat_dtype);
        for (int64_t i = 0; i < flags.numel(); i += 2)
          kernels::fill(view::slice(flags, 0, i, i + 1), 0.125);
        bucket_unflatten(flat, flags, here, slots.offsets, 7);
        bucket_unflatten(device_flat, on_device(flags), there, slots.offsets, 7);
        for (size_t i = 0; i < here.size(); ++i) {
          if (here[i].defined()) CHECK(difference(there[i], here[i]) == 0);
        }
        bucket_unflatten(flat, Tensor(), here, slots.offsets, 1);
        bucket_unflatten(device_flat, Tensor(), there, slots.offsets, 1);
        for (size_t i = 0; i < here.size(); ++i) {
          if (here[i].defined()) CHECK(difference(there[i], here[i]) == 0);
        }
      }
    }
  }
}

TEST_CASE("more slots than one launch takes, flags included") {
  const Slots slots(many_sizes(), 16);
  std::vector<Tensor> here, there;
  for (size_t i = 0; i < slots.numels.size(); ++i) {
    here.push_back(numbers({slots.numels[i]}, kFloat32, i));
    there.push_back(on_device(here[i]));
  }
  const Tensor flat = zeros({slots.total});
  const Tensor device_flat = on_device(flat);
  bucket_flatten(flat, here, slots.offsets, 2);
  bucket_flatten(device_flat, there, slots.offsets, 2);
  CHECK(difference(device_flat, flat) == 0);
  Tensor flags = zeros({300});
  for (int64_t i = 0; i < 300; i += 7)
    flags.data_ptr<float>()[i] = 1;
  bucket_unflatten(flat, flags, here, slots.offsets, 3);
  bucket_unflatten(device_flat, on_device(flags), there, slots.offsets, 3);
  for (size_t i = 0; i < here.size(); ++i)
    CHECK(difference(there[i], here[i]) == 0);
  const Tensor sums = empty({300}, kFloat64);
  const Tensor device_sums = empty({300}, {kFloat64, kDevice});
  bucket_sums_of_squares(flat, slots.offsets, slots.numels, sums);
  bucket_sums_of_squares(device_flat, slots.offsets, slots.numels, device_sums);
  CHECK(difference(device_sums, sums) <= 1e-6);

  // Empty lists.
  const Tensor none = empty({0}, {kFloat32, kDevice});
  bucket_flatten(none, {}, {}, 1);
  bucket_unflatten(none, Tensor(), {}, {}, 1);
  bucket_sums_of_squares(none, {}, {}, empty({0}, {kFloat64, kDevice}));
}

TEST_CASE("sums of squares per slot: the CPU's, the same bits each time, finite when the elements are") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    for (const int64_t boundary : {32, 1}) {
      const Slots slots(mixed_sizes(), boundary);
      const Tensor flat = numbers({slots.total + 1}, dtype, 4);
      const Tensor device_flat = on_device(flat);
      const auto count = static_cast<int64_t>(slots.numels.size());
      const Tensor sums = empty({count}, kFloat64);
      const Tensor device_sums = empty({count}, {kFloat64, kDevice});
      bucket_sums_of_squares(flat, slots.offsets, slots.numels, sums);
      bucket_sums_of_squares(device_flat, slots.offsets, slots.numels, device_sums);
      CHECK(difference(device_sums, sums) <= (dtype == kFloat64 ? 1e-13 : 1e-6));
      const auto first = on_cpu(device_sums).to_vector<double>();
      bucket_sums_of_squares(device_flat, slots.offsets, slots.numels, device_sums);
      CHECK(on_cpu(device_sums).to_vector<double>() == first);
      // Shifted by one element no vector is aligned, but the bits are still the same.
      const Tensor shifted = empty({slots.total + 2}, {dtype, kDevice});
      kernels::copy(view::slice(shifted, 0, 1, slots.total + 2), device_flat);
      bucket_sums_of_squares(view::slice(shifted, 0, 1, slots.total + 2), slots.offsets, slots.numels, device_sums);
      CHECK(on_cpu(device_sums).to_vector<double>() == first);
    }
  }
  const std::vector<int64_t> offsets{0, 100}, numels{100, 9900};
  const Tensor sums = empty({2}, {kFloat64, kDevice});
  bucket_sums_of_squares(on_device(full({10000}, 1e30)), offsets, numels, sums);
  CHECK(on_cpu(sums).to_vector<double>()[1] == doctest::Approx(9900e60));
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    Tensor x = ones({10000});
    x.data_ptr<float>()[9999] = bad;
    bucket_sums_of_squares(on_device(x), offsets, numels, sums);
    CHECK(on_cpu(sums).to_vector<double>()[0] == 100);
    CHECK_FALSE(std::isfinite(on_cpu(sums).to_vector<double>()[1]));
  }
}

TEST_CASE("the words of a bucket") {
  const double inf = std::numeric_limits<double>::infinity();
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    for (const int64_t count : {0, 1, 300}) {
      CAPTURE(count);
      for (const double value : {0.0, 1.7, 1e-30, inf, std::nan("")}) {
        CAPTURE(value);
        for (const bool non_finite : {false, true}) {
          Tensor sums = zeros({count}, kFloat64);
          for (int64_t i = count - 1; i >= 0; i -= 90)
            sums.data_ptr<double>()[i] = value;
          const Tensor words = full({4}, 7, dtype);
          const Tensor device_words = on_device(words);
          bucket_words(words, sums, non_finite);
          bucket_words(device_words, on_device(sums), non_finite);
          CHECK(difference(device_words, words) <= tolerance(dtype));
        }
      }
    }
  }
  const Tensor words = on_device(zeros({4}));
  bucket_words(words, on_device(full({2}, 1e308, kFloat64)), false);  // their sum overflows, each alone does not
  CHECK(on_cpu(words).to_vector<double>() == std::vector<double>{0, 0, 0, 0});
}

TEST_CASE("the probe of a bucket") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    for (const int64_t size : {0, 1, 511, 513, 8191, 20001}) {
      CAPTURE(size);
      for (const int64_t late : {0, 1}) {
        const Tensor x = numbers({size + late}, dtype, 3);
        const Tensor out = empty({}, kFloat64);
        const Tensor device_out = empty({}, {kFloat64, kDevice});
        bucket_probe(view::slice(x, 0, late, size + late), out);
        bucket_probe(view::slice(on_device(x), 0, late, size + late), device_out);
        CHECK(difference(device_out, out) <= 1e-11);
      }
    }
  }
}

TEST_CASE("a bucket on two devices is refused") {
  const std::vector<Tensor> tensors{ones({3})};
  const std::vector<int64_t> offsets{0};
  const Tensor flat = on_device(zeros({8}));
  CHECK_THROWS_WITH_AS(bucket_flatten(flat, tensors, offsets, 1), doctest::Contains("tensor 0 must be on cuda:0"),
                       DeviceError);
  CHECK_THROWS_AS(bucket_unflatten(flat, ones({1}), std::vector<Tensor>{on_device(tensors[0])}, offsets, 1),
                  DeviceError);
  CHECK_THROWS_AS(bucket_sums_of_squares(flat, offsets, std::vector<int64_t>{3}, zeros({1}, kFloat64)), DeviceError);
  CHECK_THROWS_AS(bucket_words(on_device(zeros({4})), zeros({1}, kFloat64), false), DeviceError);
  CHECK_THROWS_AS(bucket_probe(flat, zeros({1}, kFloat64)), DeviceError);
}

}  // namespace brigade::test::bucket_test
