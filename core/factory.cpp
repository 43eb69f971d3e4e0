// Allocates dense tensors, copies host values into them, and wraps the caller's memory.
#include <brigade/core/factory.h>

#include <brigade/core/device_runtime.h>
#include <brigade/core/nested_list.h>

#include <algorithm>
#include <cstring>

namespace brigade {
namespace {

[[noreturn, gnu::cold]] void throw_bad_sizes(const Shape& sizes) {
  if (std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; }))
    throw ShapeError("sizes must not be negative, got {}", sizes);
  throw ShapeError("sizes {} overflow the address space", sizes);
}

// Throws ShapeError.
size_t bytes_of(const Shape& sizes, DType dtype) {
  size_t bytes = itemsize(dtype);
  for (int64_t size : sizes) {
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(size), &bytes)) [[unlikely]]
      throw_bad_sizes(sizes);
  }
  return bytes;
}

[[gnu::always_inline]] inline Tensor dense(Allocation allocation, size_t bytes, const Shape& sizes,
                                           TensorOptions options) {
  auto storage = make_intrusive<Storage>(allocation, bytes, options.device);
  return Tensor(make_intrusive<TensorImpl>(std::move(storage), sizes, options.dtype));
}

}  // namespace

Tensor empty(const Shape& sizes, TensorOptions options) {
  const size_t bytes = bytes_of(sizes, options.dtype);
  const bool on_cpu = options.device.type == DeviceType::CPU;
  return dense(on_cpu ? cpu_allocate(bytes) : allocate_on(options.device, bytes), bytes, sizes, options);
}

Tensor empty_pinned(const DeviceRuntime& runtime, const Shape& sizes, DType dtype) {
  const size_t bytes = bytes_of(sizes, dtype);
  return dense(runtime.allocate_pinned(bytes), bytes, sizes, dtype);
}

Tensor empty_like(const Tensor& tensor) { return empty(tensor.sizes(), tensor.options()); }
Tensor empty_like(const Tensor& tensor, DType dtype) { return empty(tensor.sizes(), {dtype, tensor.device()}); }

template <class T>
Tensor from_values(std::span<const T> values, const Shape& sizes) {
  if (sizes.numel() != static_cast<int64_t>(values.size())) {
    throw ShapeError("shape {} has {} elements, got {} values", sizes, sizes.numel(), values.size());
  }
  Tensor result = empty(sizes, dtype_of<T>);
  if (!values.empty()) std::memcpy(result.raw_data(), values.data(), values.size_bytes());
  return result;
}

template Tensor from_values(std::span<const double>, const Shape&);
template Tensor from_values(std::span<const float>, const Shape&);
template Tensor from_values(std::span<const float16>, const Shape&);
template Tensor from_values(std::span<const bfloat16>, const Shape&);
template Tensor from_values(std::span<const int64_t>, const Shape&);
template Tensor from_values(std::span<const int32_t>, const Shape&);
template Tensor from_values(std::span<const uint8_t>, const Shape&);
template Tensor from_values(std::span<const bool>, const Shape&);

Tensor tensor(const NestedList& values) { return tensor(values, TensorOptions()); }

Tensor tensor(const NestedList& values, TensorOptions options) {
  options = options.or_dtype(values.dtype());
  const Tensor result = empty(values.sizes(), options.dtype);
  visit_dtype(options.dtype, [&]<class T>() {
    T* const to = static_cast<T*>(result.raw_data());
    for (int64_t i = 0; i < values.numel(); ++i)
      to[i] = values.value<T>(i);
  });
  if (options.device == Device()) return result;
  const Tensor moved = empty(values.sizes(), options);
  copy_bytes(moved.raw_data(), options.device, result.raw_data(), Device(), result.nbytes());
  return moved;
}

Tensor scalar_tensor(double value, TensorOptions options) { return tensor(value, options.or_dtype(kFloat32)); }

Tensor from_blob(void* data, const Shape& sizes, TensorOptions options, std::function<void()> release) {
  if (options.device != Device()) device_runtime(options.device);  // throws when there is no such device
  const size_t bytes = bytes_of(sizes, options.dtype);
  Allocation allocation{data, nullptr, nullptr};
  if (release) {
    allocation.context = new std::function<void()>(std::move(release));
    allocation.deleter = [](void*, void* context, size_t) {
      auto* callback = static_cast<std::function<void()>*>(context);
      (*callback)();
      delete callback;
    };
  }
  return dense(allocation, bytes, sizes, options);
}

// --- Joins the entries of nested braces into one row-major list.

NestedList::NestedList(std::initializer_list<NestedList> entries) {
  sizes_.push_back(static_cast<int64_t>(entries.size()));
  if (entries.size() == 0) return;
  const Shape& inner = entries.begin()->sizes_;
  for (int64_t size : inner)
    sizes_.push_back(size);
  kind_ = Kind::Bool;
  int64_t position = 0;
  for (const NestedList& entry : entries) {
    if (entry.sizes_ != inner) {
      throw ShapeError("tensor: entry {} of a list has shape {}, expected that of the first, {}", position,
                       entry.sizes_, inner);
    }
    kind_ = std::max(kind_, entry.kind_);
    numbers_.insert(numbers_.end(), entry.numbers_.begin(), entry.numbers_.end());
    ++position;
  }
}

DType NestedList::dtype() const noexcept {
  switch (kind_) {
    case Kind::Bool: return DType::Bool;
    case Kind::Integer: return DType::Int64;
    case Kind::Floating: break;
  }
  return DType::Float32;
}

}  // namespace brigade
