// Tensors become structs of either version; imported structs are checked for dtype, device and strides.
#include <brigade/core/dlpack.h>

#include <brigade/core/device_runtime.h>
#include <brigade/core/factory.h>
#include <brigade/core/view.h>

#include <cstddef>
#include <functional>

namespace brigade {
namespace {

using namespace dlpack;

// The layout on 64-bit machines, which is the contract.
static_assert(sizeof(TensorView) == 48 && offsetof(TensorView, shape) == 24 && offsetof(TensorView, byte_offset) == 40);
static_assert(sizeof(Managed) == 64 && offsetof(Managed, deleter) == 56);
static_assert(sizeof(ManagedVersioned) == 80 && offsetof(ManagedVersioned, flags) == 24 &&
              offsetof(ManagedVersioned, dl_tensor) == 32);

struct Form {
  DType dtype;
  uint8_t code;
};
constexpr Form kForms[] = {{kFloat64, kDLFloat}, {kFloat32, kDLFloat}, {kFloat16, kDLFloat}, {kBFloat16, kDLBfloat},
                           {kInt64, kDLInt},     {kInt32, kDLInt},     {kUInt8, kDLUInt},    {kBool, kDLBool}};

// The data that an exported struct points to.
template <class Struct>
struct Exported {
  Struct managed{};
  Tensor tensor;
  int64_t sizes[kMaxDims];
  int64_t strides[kMaxDims];
};

template <class Struct>
Struct* export_as(const Tensor& tensor) {
  if (!tensor.defined()) throw ValueError("to_dlpack: the tensor is undefined; expected a tensor");
  if (tensor.requires_grad())
    throw AutogradError("Can't export tensors that require gradient, use tensor.detach(): to_dlpack of {}",
                        describe(tensor));
  auto exported = std::make_unique<Exported<Struct>>();
  exported->tensor = view::alias(tensor);
  std::copy(tensor.sizes().begin(), tensor.sizes().end(), exported->sizes);
  std::copy(tensor.strides().begin(), tensor.strides().end(), exported->strides);
  const Device device = tensor.device();
  const uint8_t code = kForms[static_cast<int>(tensor.dtype())].code;
  exported->managed.dl_tensor = {.data = tensor.numel() > 0 ? tensor.raw_data() : nullptr,
                                 .device = {device.type == DeviceType::CPU ? kDLCPU : kDLCUDA, device.index},
                                 .ndim = tensor.dim(),
                                 .dtype = {code, static_cast<uint8_t>(8 * tensor.itemsize()), 1},
                                 .shape = exported->sizes,
                                 .strides = exported->strides,
                                 .byte_offset = 0};
  exported->managed.manager_ctx = exported.get();
  exported->managed.deleter = [](Struct* self) { delete static_cast<Exported<Struct>*>(self->manager_ctx); };
  return &exported.release()->managed;
}

std::string kind_name(int32_t kind) {
  constexpr const char* kNames[] = {
      "",          "kDLCPU",         "kDLCUDA",   "kDLCUDAHost", "kDLOpenCL",  "",
      "",          "kDLVulkan",      "kDLMetal",  "kDLVPI",      "kDLROCM",    "kDLROCMHost",
      "kDLExtDev", "kDLCUDAManaged", "kDLOneAPI", "kDLWebGPU",   "kDLHexagon", "kDLMAIA"};
  const bool known = kind > 0 && kind < static_cast<int32_t>(std::size(kNames)) && *kNames[kind];
  return std::to_string(kind) + (known ? std::string(" (") + kNames[kind] + ")" : "");
}

Device device_of(const DeviceOf& given) {
  if (given.device_type == kDLCPU) return Device();
  if (given.device_type != kDLCUDA)
    throw DeviceError("from_dlpack: memory of device type {}; expected kDLCPU or kDLCUDA: copy it to one of them first",
                      kind_name(given.device_type));
  if (given.device_id < 0 || given.device_id > INT16_MAX)
    throw DeviceError("from_dlpack: device id {} of kDLCUDA; expected the index of a device", given.device_id);
  const Device device(kCUDA, given.device_id);
  device_runtime(device);  // throws when it is not there
  return device;
}

DType dtype_of_form(const DataType& given) {
  if (given.lanes == 1) {
    for (const Form& form : kForms) {
      if (form.code == given.code && 8 * itemsize(form.dtype) == given.bits) return form.dtype;
    }
  }
  throw DTypeError(
      "from_dlpack: dtype code {}, {} bits, {} lanes; expected one lane of float64, float32, float16, "
      "bfloat16, int64, int32, uint8 or bool",
      given.code, given.bits, given.lanes);
}

struct Layout {
  Shape sizes;
  Shape strides;
  int64_t extent = 0;  // elements from the first to the last; 0 for none
};

Layout layout_of(const TensorView& given, size_t itemsize) {
  if (given.ndim < 0) throw ValueError("from_dlpack: ndim is {}; expected at least 0", given.ndim);
  if (given.ndim > kMaxDims) throw ShapeError("from_dlpack: ndim is {}; expected at most {}", given.ndim, kMaxDims);
  if (given.ndim > 0 && !given.shape) throw ValueError("from_dlpack: shape is null; expected {} sizes", given.ndim);
  Layout layout;
  bool empty = false;
  int64_t bytes = static_cast<int64_t>(itemsize);
  for (int i = 0; i < given.ndim; ++i) {
    const int64_t size = given.shape[i];
    layout.sizes.push_back(size);
    if (size < 0) throw ValueError("from_dlpack: size {} of dimension {}; expected at least 0", size, i);
    empty = empty || size == 0;
    if (size > 0 && __builtin_mul_overflow(bytes, size, &bytes))
      throw ValueError("from_dlpack: the sizes overflow; expected less than 2^63 bytes");
  }
  if (given.strides) {
    for (int i = 0; i < given.ndim; ++i)
      layout.strides.push_back(given.strides[i]);
  } else {
    layout.strides = contiguous_strides(layout.sizes);
  }
  if (empty) return layout;
  int64_t last = 0;
  for (int i = 0; i < given.ndim; ++i) {
    const int64_t stride = layout.strides[i];
    if (stride < 0)
      throw ValueError(
          "from_dlpack: stride {} of dimension {}; expected at least 0: copy the array where it comes from", stride, i);
    int64_t reach = 0;
    if (__builtin_mul_overflow(layout.sizes[i] - 1, stride, &reach) || __builtin_add_overflow(last, reach, &last))
      throw ValueError("from_dlpack: the strides overflow; expected elements within 2^63 bytes");
  }
  if (last >= INT64_MAX / static_cast<int64_t>(itemsize))
    throw ValueError("from_dlpack: the strides overflow; expected elements within 2^63 bytes");
  layout.extent = last + 1;
  return layout;
}

// `release` is called once when the tensor is no longer used; not at all when this throws.
Tensor import_view(const TensorView& given, bool copy, const std::function<void()>& release) {
  const Device device = device_of(given.device);
  const DType dtype = dtype_of_form(given.dtype);
  const Layout layout = layout_of(given, itemsize(dtype));
  if (layout.extent > 0 && !given.data)
    throw ValueError("from_dlpack: data is null; expected the address of the elements");
  char* data = layout.extent > 0 ? static_cast<char*>(given.data) + given.byte_offset : nullptr;
  if (reinterpret_cast<uintptr_t>(data) % itemsize(dtype) != 0)
    throw ValueError(
        "from_dlpack: the elements begin at an address that is not a multiple of {}; expected memory aligned for {}",
        itemsize(dtype), name(dtype));
  Tensor memory;
  if (copy) {
    memory = empty({layout.extent}, {dtype, device});
    copy_bytes(memory.raw_data(), device, data, device, memory.nbytes());
  } else {
    memory = from_blob(data, {layout.extent}, {dtype, device}, release);
  }
  // `layout` was checked for consistency, so this cannot throw.
  const Tensor result = view::as_strided(memory, layout.sizes, layout.strides, 0);
  if (copy) release();
  return result;
}

template <class Struct>
std::function<void()> releases(Struct* managed) {
  return [managed] {
    if (managed->deleter) managed->deleter(managed);
  };
}

}  // namespace

dlpack::Managed* to_dlpack(const Tensor& tensor) { return export_as<Managed>(tensor); }

dlpack::ManagedVersioned* to_dlpack_versioned(const Tensor& tensor, bool read_only) {
  ManagedVersioned* managed = export_as<ManagedVersioned>(tensor);
  managed->version = {kMajorVersion, kMinorVersion};
  managed->flags = read_only ? kReadOnly : 0;
  return managed;
}

Tensor from_dlpack(dlpack::Managed* managed) {
  if (!managed) throw ValueError("from_dlpack: the pointer is null; expected a DLManagedTensor");
  return import_view(managed->dl_tensor, false, releases(managed));
}

Tensor from_dlpack(dlpack::ManagedVersioned* managed, ReadOnlyMemory read_only) {
  if (!managed) throw ValueError("from_dlpack: the pointer is null; expected a DLManagedTensorVersioned");
  // For another major version, only the version and the deleter may be read.
  if (managed->version.major != kMajorVersion)
    throw ValueError("from_dlpack: version {}.{}; expected 1.x: ask the producer for max_version (1, 1)",
                     managed->version.major, managed->version.minor);
  const bool copy = managed->flags & kReadOnly;
  if (copy && read_only == ReadOnlyMemory::Refuse)
    throw ValueError(
        "from_dlpack: the memory is read-only, and a tensor can be written to; expected writable memory, or "
        "ReadOnlyMemory::Copy");
  return import_view(managed->dl_tensor, copy, releases(managed));
}

}  // namespace brigade
