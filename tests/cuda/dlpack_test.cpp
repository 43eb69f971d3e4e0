#include <brigade/core/device_runtime.h>
#include <brigade/core/dlpack.h>
#include <brigade/core/factory.h>
#include <brigade/core/view.h>

#include <doctest/doctest.h>

namespace brigade::test::dlpack_test {
namespace {

Tensor counting_on_device() {
  const Tensor host = tensor(std::vector<float>{0, 1, 2, 3, 4, 5}, {2, 3});
  const Tensor device = empty({2, 3}, {kFloat32, Device(kCUDA, 0)});
  copy_bytes(device.raw_data(), device.device(), host.raw_data(), Device(), host.nbytes());
  return device;
}

}  // namespace

TEST_CASE("DLPack: memory of a device is handed over as it is") {
  const Tensor sent = view::transpose(counting_on_device(), 0, 1);
  dlpack::ManagedVersioned* managed = to_dlpack_versioned(sent);
  CHECK(managed->dl_tensor.device.device_type == dlpack::kDLCUDA);
  CHECK(managed->dl_tensor.device.device_id == 0);
  CHECK(managed->dl_tensor.data == sent.raw_data());
  {
    const Tensor back = from_dlpack(managed);
    CHECK(back.device() == Device(kCUDA, 0));
    CHECK(back.raw_data() == sent.raw_data());
    CHECK(back.to_vector<float>() == std::vector<float>{0, 3, 1, 4, 2, 5});
  }
  CHECK(sent.storage()->use_count() == 1);
}

TEST_CASE("DLPack: read-only memory of a device is copied on the device") {
  const Tensor sent = counting_on_device();
  const Tensor copied = from_dlpack(to_dlpack_versioned(sent, true), ReadOnlyMemory::Copy);
  CHECK(copied.device() == Device(kCUDA, 0));
  CHECK(copied.raw_data() != sent.raw_data());
  CHECK(sent.storage()->use_count() == 1);
  CHECK(copied.to_vector<float>() == std::vector<float>{0, 1, 2, 3, 4, 5});
}

}  // namespace brigade::test::dlpack_test
