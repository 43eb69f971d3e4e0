// The table of kernels: one row per operation, one column per device type.
#include <brigade/core/factory.h>
#include <brigade/kernels/kernel.h>

#include <doctest/doctest.h>

#include <span>
#include <string>
#include <vector>

namespace brigade::test::kernel_test {
namespace {

int64_t elements_on_cpu(const Tensor& x, int64_t more) { return x.numel() + more; }
int64_t elements_elsewhere(const Tensor& x, int64_t more) { return 100 + x.numel() + more; }
std::string dtype_asked_for(const TensorOptions& options) { return name(options.dtype); }
size_t count_of(std::span<const Tensor> tensors) { return tensors.size(); }

}  // namespace

TEST_CASE("a call goes to the column of its first argument's device") {
  const Kernel<int64_t(const Tensor&, int64_t)> elements("elements", &elements_on_cpu);
  CHECK(std::string(elements.name()) == "elements");
  CHECK(elements(empty({2, 3}), 1) == 7);
  CHECK(elements(empty({0}), 0) == 0);
  const Kernel<std::string(const TensorOptions&)> dtype("dtype", &dtype_asked_for);
  CHECK(dtype({kInt64}) == "int64");
  const Kernel<size_t(std::span<const Tensor>)> count("count", &count_of);
  const std::vector<Tensor> two{empty({1}), empty({2})};
  CHECK(count(two) == 2);
  CHECK(count({}) == 0);  // no tensors: the CPU column
}

TEST_CASE("a column is filled by AddKernel, and leaves the others as they are") {
  Kernel<int64_t(const Tensor&, int64_t)> elements("elements", &elements_on_cpu);
  CHECK(elements.has(kCPU));
  CHECK_FALSE(elements.has(kCUDA));
  const AddKernel add(elements, kCUDA, &elements_elsewhere);
  CHECK(elements.has(kCUDA));
  CHECK(elements(empty({3}), 0) == 3);
  elements.add(kCPU, &elements_elsewhere);
  CHECK(elements(empty({3}), 0) == 103);
}

TEST_CASE("a device without a kernel is refused by name") {
  const Kernel<std::string(const TensorOptions&)> dtype("dtype", &dtype_asked_for);
  const Device cuda(kCUDA);
  CHECK_THROWS_WITH_AS(dtype({kInt64, cuda}),
                       "'dtype' has no kernel for cuda; this build of Brigade does not support it there", DeviceError);
  const Kernel<std::string(const TensorOptions&)> nowhere("nowhere", nullptr);
  CHECK_THROWS_WITH_AS(nowhere({kInt64}), doctest::Contains("'nowhere' has no kernel for cpu"), DeviceError);
}

}  // namespace brigade::test::kernel_test
