// Ids of tensors, contiguity, single elements read on the host, and the text of a tensor.
#include <brigade/core/tensor.h>

#include <brigade/core/compiler.h>
#include <brigade/core/detail/read_listener.h>
#include <brigade/core/device_runtime.h>

#include <atomic>
#include <cstdio>
#include <ostream>

namespace brigade {
namespace {

// Ids come in blocks per thread, so that making a tensor touches no shared cache line.
constexpr uint64_t kIdBlock = 1 << 20;
std::atomic<uint64_t> next_id_block{1};
BRIGADE_INITIAL_EXEC constinit thread_local uint64_t next_of_block = 0;

uint64_t next_id() noexcept {
  if (next_of_block % kIdBlock == 0) [[unlikely]]
    next_of_block = next_id_block.fetch_add(1, std::memory_order_relaxed) * kIdBlock + 1;
  return next_of_block++;
}

const char* element_address(const Tensor& tensor, int64_t position) {
  if (!tensor.defined()) throw ValueError("an undefined tensor has no elements");
  if (position < 0 || position >= tensor.numel()) {
    throw IndexError("element {} of a tensor with {} elements", position, tensor.numel());
  }
  int64_t element = 0;
  for (int i = tensor.dim() - 1; i >= 0; --i) {
    const int64_t size = tensor.sizes()[i];
    element += position % size * tensor.strides()[i];
    position /= size;
  }
  return static_cast<const char*>(tensor.raw_data()) + element * static_cast<int64_t>(tensor.itemsize());
}

void print_values(const Tensor& tensor, int dim, int64_t position, std::string& text) {
  constexpr int64_t kShown = 6;
  if (dim == tensor.dim()) {
    char buffer[40];
    if (is_floating_point(tensor.dtype())) {
      std::snprintf(buffer, sizeof buffer, "%.6g", detail::element_as_double(tensor, position));
    } else {
      std::snprintf(buffer, sizeof buffer, "%lld", static_cast<long long>(detail::element_as_int(tensor, position)));
    }
    text += buffer;
    return;
  }
  int64_t inner = 1;
  for (int i = dim + 1; i < tensor.dim(); ++i)
    inner *= tensor.sizes()[i];
  const int64_t size = tensor.sizes()[dim];
  text += "[";
  for (int64_t i = 0; i < size; ++i) {
    if (i > 0) text += ", ";
    if (size > 2 * kShown && i == kShown) {
      text += "...";
      i = size - kShown - 1;
      continue;
    }
    print_values(tensor, dim + 1, position + i * inner, text);
  }
  text += "]";
}

}  // namespace

// Both constructors make one pass over the entries: recording an operation makes up to three of these.
TensorImpl::TensorImpl(StoragePtr storage_, const Shape& sizes_, const Shape& strides_, int64_t offset_, DType dtype_)
    : storage(std::move(storage_)),
      sizes(Shape::AsLongAs{sizes_}),
      strides(Shape::AsLongAs{sizes_}),
      offset(offset_),
      id(next_id()),
      dtype(dtype_) {
  const int64_t* const from_sizes = sizes_.begin();
  const int64_t* const from_strides = strides_.begin();
  int64_t* const to_sizes = sizes.begin();
  int64_t* const to_strides = strides.begin();
  int64_t product = 1;
  bool overflows = false;
  bool strided = false;
  for (int i = sizes_.size() - 1; i >= 0; --i) {
    const int64_t size = from_sizes[i];
    const int64_t stride = from_strides[i];
    to_sizes[i] = size;
    to_strides[i] = stride;
    strided |= size != 1 && stride != product;
    overflows |= __builtin_mul_overflow(product, size, &product);
  }
  if (overflows || product == 0) [[unlikely]]
    product = sizes_.numel();  // throws where it is too large
  numel = product;
  contiguous = !strided || product == 0;
}

TensorImpl::TensorImpl(StoragePtr storage_, const Shape& sizes_, DType dtype_)
    : storage(std::move(storage_)),
      sizes(Shape::AsLongAs{sizes_}),
      strides(Shape::AsLongAs{sizes_}),
      id(next_id()),
      dtype(dtype_) {
  const int64_t* const from = sizes_.begin();
  int64_t* const to_sizes = sizes.begin();
  int64_t* const to_strides = strides.begin();
  int64_t product = 1;
  bool overflows = false;
  for (int i = sizes_.size() - 1; i >= 0; --i) {
    const int64_t size = from[i];
    to_sizes[i] = size;
    to_strides[i] = product;
    overflows |= __builtin_mul_overflow(product, size, &product);
  }
  numel = product;
  if (overflows || product == 0) [[unlikely]]
    set_unusual(sizes_);
}

void TensorImpl::set_unusual(const Shape& sizes_) {
  numel = sizes_.numel();  // one of the two throws where either is too large
  strides = contiguous_strides(sizes_);
}

void Tensor::throw_undefined() {
  throw ValueError(
      "expected a tensor, got an undefined one, which has no shape and no data: the grad() of a tensor that no "
      "backward has reached, a Tensor() that nothing was assigned to, or an optional result or parameter that is not "
      "there; ask defined() first");
}

void Tensor::throw_dtype_mismatch(DType asked) const {
  throw DTypeError("data_ptr: expected a tensor of {}, got {}; ask for that type or convert with .to()", name(asked),
                   name(dtype()));
}

namespace detail {
namespace {
void note_reading(const char* method, const Tensor& tensor, SourceLocation where) {
  if (const ReadListener listener = read_listener; listener && tensor.defined()) listener(method, tensor, where);
}
}  // namespace

void note_item(const Tensor& tensor, SourceLocation where) {
  if (!tensor.defined() || tensor.numel() != 1)
    throw ShapeError(where, "item(): expected a tensor with one element, got {}", describe(tensor));
  note_reading("item", tensor, where);
}
void note_to_vector(const Tensor& tensor, SourceLocation where) { note_reading("to_vector", tensor, where); }

Tensor on_host(const Tensor& tensor) {
  if (!tensor.defined() || tensor.device().type == DeviceType::CPU) return tensor;
  int64_t first = tensor.storage_offset();
  int64_t last = first;
  for (int d = 0; d < tensor.dim() && tensor.numel() > 0; ++d) {
    const int64_t reach = (tensor.sizes()[d] - 1) * tensor.strides()[d];
    (reach < 0 ? first : last) += reach;
  }
  const size_t itemsize = tensor.itemsize();
  const size_t bytes = tensor.numel() == 0 ? 0 : static_cast<size_t>(last - first + 1) * itemsize;
  auto storage = make_intrusive<Storage>(cpu_allocate(bytes), bytes, Device());
  const char* from = static_cast<const char*>(tensor.storage()->data()) + first * static_cast<int64_t>(itemsize);
  copy_bytes(storage->data(), Device(), from, tensor.device(), bytes);
  return Tensor(make_intrusive<TensorImpl>(std::move(storage), tensor.sizes(), tensor.strides(),
                                           tensor.storage_offset() - first, tensor.dtype()));
}

double element_as_double(const Tensor& tensor, int64_t position) {
  if (tensor.defined() && tensor.is_cuda()) return element_as_double(on_host(tensor), position);
  const char* address = element_address(tensor, position);
  return visit_dtype(tensor.dtype(),
                     [&]<class T>() { return static_cast<double>(*reinterpret_cast<const T*>(address)); });
}

int64_t element_as_int(const Tensor& tensor, int64_t position) {
  if (tensor.defined() && tensor.is_cuda()) return element_as_int(on_host(tensor), position);
  const char* address = element_address(tensor, position);
  return visit_dtype(tensor.dtype(), [&]<class T>() {
    return static_cast<int64_t>(static_cast<compute_type<T>>(*reinterpret_cast<const T*>(address)));
  });
}

}  // namespace detail

std::string describe(const Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  std::string text = std::string(name(tensor.dtype())) + " " + to_string(tensor.sizes());
  if (tensor.device() != Device()) text += " on " + to_string(tensor.device());
  return text;
}

std::string to_string(const Tensor& tensor) {
  if (!tensor.defined()) return "tensor(undefined)";
  std::string text = "tensor(";
  print_values(detail::on_host(tensor), 0, 0, text);
  if (tensor.dtype() != kFloat32) text += std::string(", ") + name(tensor.dtype());
  if (tensor.device() != Device()) text += ", " + to_string(tensor.device());
  return text + ")";
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << to_string(tensor); }

}  // namespace brigade
