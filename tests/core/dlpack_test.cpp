#include <brigade/core/dlpack.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>

#include <core/error_of.h>

#include <doctest/doctest.h>

namespace brigade::test::dlpack_test {
using test::error_of;

namespace {

// A producer's struct over its own array; counts how often its deleter runs.
struct Producer {
  float data[6] = {0, 1, 2, 3, 4, 5};
  int64_t sizes[9] = {2, 3, 1, 1, 1, 1, 1, 1, 1};
  int64_t strides[9] = {3, 1, 1, 1, 1, 1, 1, 1, 1};
  int deleted = 0;
  dlpack::ManagedVersioned managed{
      {1, 0},
      this,
      [](dlpack::ManagedVersioned* self) { ++static_cast<Producer*>(self->manager_ctx)->deleted; },
      0,
      {data, {dlpack::kDLCPU, 0}, 2, {dlpack::kDLFloat, 32, 1}, sizes, strides, 0}};
  dlpack::TensorView& view = managed.dl_tensor;

  Tensor take(ReadOnlyMemory read_only = ReadOnlyMemory::Refuse) { return from_dlpack(&managed, read_only); }
};

}  // namespace

TEST_CASE("DLPack: an exported struct describes the tensor's own memory and keeps it alive") {
  Tensor matrix = tensor(std::vector<float>{0, 1, 2, 3, 4, 5}, {2, 3});
  Tensor column = view::select(matrix, 1, 1);
  const StoragePtr storage = matrix.storage();
  const float* first = column.data_ptr<float>();
  dlpack::Managed* managed = to_dlpack(column);
  const dlpack::TensorView& view = managed->dl_tensor;
  CHECK(view.data == first);
  CHECK(view.byte_offset == 0);
  CHECK(view.device.device_type == dlpack::kDLCPU);
  CHECK(view.device.device_id == 0);
  REQUIRE(view.ndim == 1);
  CHECK(view.shape[0] == 2);
  CHECK(view.strides[0] == 3);
  column = Tensor();
  matrix = Tensor();
  CHECK(storage->use_count() == 2);
  CHECK(static_cast<float*>(view.data)[3] == 4);
  managed->deleter(managed);
  CHECK(storage->use_count() == 1);
}

TEST_CASE("DLPack: every dtype goes out and comes back over the same memory, in both forms") {
  struct Row {
    DType dtype;
    uint8_t code, bits;
  };
  for (const Row& row : {Row{kFloat64, 2, 64}, Row{kFloat32, 2, 32}, Row{kFloat16, 2, 16}, Row{kBFloat16, 4, 16},
                         Row{kInt64, 0, 64}, Row{kInt32, 0, 32}, Row{kUInt8, 1, 8}, Row{kBool, 6, 8}}) {
    CAPTURE(name(row.dtype));
    const Tensor sent = view::transpose(empty({2, 3}, row.dtype), 0, 1);
    dlpack::Managed* managed = to_dlpack(sent);
    CHECK(managed->dl_tensor.dtype.code == row.code);
    CHECK(managed->dl_tensor.dtype.bits == row.bits);
    CHECK(managed->dl_tensor.dtype.lanes == 1);
    dlpack::ManagedVersioned* versioned = to_dlpack_versioned(sent);
    CHECK(versioned->version.major == 1);
    CHECK(versioned->version.minor == 1);
    CHECK(versioned->flags == 0);
    for (const Tensor& back : {from_dlpack(managed), from_dlpack(versioned)}) {
      CHECK(back.dtype() == row.dtype);
      CHECK(back.sizes() == Shape{3, 2});
      CHECK(back.strides() == Shape{1, 3});
      CHECK(back.raw_data() == sent.raw_data());
    }
    CHECK(sent.storage()->use_count() == 1);
  }
}

TEST_CASE("DLPack: scalars and tensors without elements") {
  for (const Tensor& sent : {scalar_tensor(2.5), empty({0, 3}), empty({3, 0, 2}, kInt64)}) {
    dlpack::ManagedVersioned* managed = to_dlpack_versioned(sent);
    CHECK((managed->dl_tensor.data == nullptr) == (sent.numel() == 0));
    const Tensor back = from_dlpack(managed);
    CHECK(back.sizes() == sent.sizes());
    CHECK(back.to_vector<float>() == sent.to_vector<float>());
  }
}

TEST_CASE("DLPack: the producer's memory is shared, and given back once, when the last view of it goes") {
  Producer producer;
  {
    Tensor part;
    {
      const Tensor taken = producer.take();
      CHECK(taken.raw_data() == producer.data);
      CHECK(taken.to_vector<float>() == std::vector<float>{0, 1, 2, 3, 4, 5});
      producer.data[4] = 40;
      CHECK(taken.to_vector<float>()[4] == 40);
      taken.data_ptr<float>()[0] = -1;
      CHECK(producer.data[0] == -1);
      part = view::select(taken, 0, 1);
    }
    CHECK(producer.deleted == 0);
    CHECK(part.to_vector<float>() == std::vector<float>{3, 40, 5});
  }
  CHECK(producer.deleted == 1);
}

TEST_CASE("DLPack: strides, byte offset, null strides and a null deleter") {
  Producer producer;
  producer.view.byte_offset = 4;
  producer.sizes[0] = 2;
  producer.sizes[1] = 2;
  producer.strides[0] = 1;
  producer.strides[1] = 3;
  CHECK(producer.take().to_vector<float>() == std::vector<float>{1, 4, 2, 5});
  producer.strides[0] = 0;
  CHECK(producer.take().to_vector<float>() == std::vector<float>{1, 4, 1, 4});
  producer.view.strides = nullptr;
  CHECK(producer.take().to_vector<float>() == std::vector<float>{1, 2, 3, 4});
  CHECK(producer.deleted == 3);
  producer.managed.deleter = nullptr;
  CHECK(producer.take().to_vector<float>() == std::vector<float>{1, 2, 3, 4});
  CHECK(producer.deleted == 3);
  // A stride over a dimension of size 1 is ignored.
  producer.view.byte_offset = 0;
  producer.view.strides = producer.strides;
  producer.sizes[0] = 1;
  producer.strides[0] = INT64_MAX;
  producer.strides[1] = 1;
  CHECK(producer.take().to_vector<float>() == std::vector<float>{0, 1});
}

TEST_CASE("DLPack: read-only memory is refused, or copied and given back at once") {
  Producer producer;
  producer.managed.flags = dlpack::kReadOnly;
  CHECK(error_of([&] { producer.take(); }) ==
        "from_dlpack: the memory is read-only, and a tensor can be written to; expected writable memory, or "
        "ReadOnlyMemory::Copy");
  CHECK(producer.deleted == 0);
  producer.sizes[0] = 3;
  producer.sizes[1] = 2;
  producer.strides[0] = 1;
  producer.strides[1] = 3;
  const Tensor copied = producer.take(ReadOnlyMemory::Copy);
  CHECK(producer.deleted == 1);
  copied.data_ptr<float>()[0] = 9;
  CHECK(producer.data[0] == 0);
  CHECK(copied.to_vector<float>() == std::vector<float>{9, 3, 1, 4, 2, 5});
  // Writable memory is never copied, even if copies are allowed.
  producer.managed.flags = dlpack::kIsCopied;
  CHECK(producer.take(ReadOnlyMemory::Copy).raw_data() == producer.data);
  dlpack::ManagedVersioned* exported = to_dlpack_versioned(copied, true);
  CHECK(exported->flags == dlpack::kReadOnly);
  exported->deleter(exported);
}

TEST_CASE("DLPack: what cannot be taken is named, and stays the caller's") {
  struct Row {
    void (*change)(Producer&);
    const char* message;
  };
  const Row rows[] = {
      {[](Producer& p) {
         p.managed.version = {2, 3};
       },
       "version 2.3; expected 1.x: ask the producer for max_version (1, 1)"},
      {[](Producer& p) {
         p.managed.version = {0, 8};
       },
       "version 0.8; expected 1.x: ask the producer for max_version (1, 1)"},
      {[](Producer& p) {
         p.view.device = {10, 0};
       },
       "memory of device type 10 (kDLROCM); expected kDLCPU or kDLCUDA: copy it to one of them first"},
      {[](Producer& p) {
         p.view.device = {-7, 0};
       },
       "memory of device type -7; expected kDLCPU or kDLCUDA: copy it to one of them first"},
      {[](Producer& p) {
         p.view.device = {5, 0};
       },
       "memory of device type 5; expected kDLCPU or kDLCUDA: copy it to one of them first"},
      {[](Producer& p) {
         p.view.device = {2, -1};
       },
       "device id -1 of kDLCUDA; expected the index of a device"},
      {[](Producer& p) {
         p.view.device = {2, 1 << 20};
       },
       "device id 1048576 of kDLCUDA; expected the index of a device"},
      {[](Producer& p) { p.view.dtype.lanes = 4; },
       "dtype code 2, 32 bits, 4 lanes; expected one lane of float64, float32, float16, bfloat16, int64, int32, uint8 "
       "or bool"},
      {[](Producer& p) {
         p.view.dtype = {5, 64, 1};
       },
       "dtype code 5, 64 bits, 1 lanes; expected one lane of float64, float32, float16, bfloat16, int64, int32, uint8 "
       "or bool"},
      {[](Producer& p) {
         p.view.dtype = {0, 16, 1};
       },
       "dtype code 0, 16 bits, 1 lanes; expected one lane of float64, float32, float16, bfloat16, int64, int32, uint8 "
       "or bool"},
      {[](Producer& p) { p.view.ndim = -1; }, "ndim is -1; expected at least 0"},
      {[](Producer& p) { p.view.ndim = 65; }, "ndim is 65; expected at most 64"},
      {[](Producer& p) { p.view.shape = nullptr; }, "shape is null; expected 2 sizes"},
      {[](Producer& p) { p.sizes[1] = -3; }, "size -3 of dimension 1; expected at least 0"},
      {[](Producer& p) { p.sizes[0] = p.sizes[1] = int64_t{1} << 31; },
       "the sizes overflow; expected less than 2^63 bytes"},
      {[](Producer& p) { p.strides[0] = -3; },
       "stride -3 of dimension 0; expected at least 0: copy the array where it comes from"},
      {[](Producer& p) { p.strides[1] = INT64_MAX; }, "the strides overflow; expected elements within 2^63 bytes"},
      {[](Producer& p) { p.strides[0] = INT64_MAX; }, "the strides overflow; expected elements within 2^63 bytes"},
      {[](Producer& p) { p.strides[0] = INT64_MAX / 4; }, "the strides overflow; expected elements within 2^63 bytes"},
      {[](Producer& p) { p.view.data = nullptr; }, "data is null; expected the address of the elements"},
      {[](Producer& p) { p.view.byte_offset = 2; },
       "the elements begin at an address that is not a multiple of 4; expected memory aligned for float32"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.message);
    Producer producer;
    row.change(producer);
    CHECK(error_of([&] { producer.take(); }) == std::string("from_dlpack: ") + row.message);
    CHECK(producer.deleted == 0);
  }
  Producer producer;
  producer.view.dtype.lanes = 0;
  CHECK_THROWS_AS(producer.take(), DTypeError);
  producer.view.device.device_type = 3;
  CHECK_THROWS_AS(producer.take(), DeviceError);
  producer.view.device = {dlpack::kDLCUDA, 1000};  // no machine has that many devices
  CHECK_THROWS_AS(producer.take(), DeviceError);
  CHECK(producer.deleted == 0);
  CHECK(error_of([] { from_dlpack(static_cast<dlpack::Managed*>(nullptr)); }) ==
        "from_dlpack: the pointer is null; expected a DLManagedTensor");
  CHECK(error_of([] { from_dlpack(static_cast<dlpack::ManagedVersioned*>(nullptr)); }) ==
        "from_dlpack: the pointer is null; expected a DLManagedTensorVersioned");
  CHECK(error_of([] { to_dlpack(Tensor()); }) == "to_dlpack: the tensor is undefined; expected a tensor");
}

}  // namespace brigade::test::dlpack_test
