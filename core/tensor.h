// Tensor: a cheap handle to shared state (storage, shape, strides, dtype, device, history).
//
// Copying a Tensor copies the handle: both names mean the same tensor. Views share the storage.
// Metadata and raw data access are defined here in the core. The methods that take part in
// differentiation (marked "autograd") are declared here, so that a Tensor reads as one type, and
// defined by the autograd library.
#pragma once

#include <brigade/core/dtype.h>
#include <brigade/core/scalar.h>
#include <brigade/core/shape.h>
#include <brigade/core/storage.h>

#include <atomic>
#include <concepts>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace brigade {

class Tensor;

using SourceLocation = std::source_location;

// What the autograd library attaches to a tensor: its gradient, history and hooks. Owned by the
// tensor.
struct AutogradMetaBase {
  virtual ~AutogradMetaBase() = default;
};

// The recorded operation that made a tensor (autograd::Node), as the core sees it: something to
// keep alive.
class GradFnBase : public detail::Pooled {
 public:
  void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  void retain_new() const noexcept { count_.store(1, std::memory_order_relaxed); }
  void release() const noexcept {
    if (count_.load(std::memory_order_acquire) == 1 || count_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }

 protected:
  virtual ~GradFnBase() = default;
  virtual void destroy() const noexcept = 0;

 private:
  mutable std::atomic<uint32_t> count_{0};
};

struct TensorImpl;
using TensorImplPtr = IntrusivePtr<TensorImpl>;

// The shared state behind Tensor.
struct TensorImpl : RefCounted<TensorImpl>, detail::Pooled {
  StoragePtr storage;
  Shape sizes;
  Shape strides;       // in elements
  int64_t offset = 0;  // of the first element in the storage, in elements
  int64_t numel = 0;
  uint64_t id = 0;  // unique in the process; the tape refers to tensors by id
  DType dtype = DType::Float32;
  bool contiguous = true;
  bool requires_grad = false;  // a leaf that wants a gradient, or a result with history
  bool view_without_grad_mode = false;
  // For a result: the operation that made it, and the index of this output.
  uint32_t output_nr = 0;
  IntrusivePtr<GradFnBase> grad_fn;
  std::unique_ptr<AutogradMetaBase> autograd;
  // For a view made by a differentiable operation: the base tensor, which is not a view itself. A
  // recorded write gives the base a new history and increments `history`; a view whose own count
  // lags behind has yet to adopt that history.
  TensorImplPtr view_base;
  uint32_t history = 0;

  TensorImpl(StoragePtr storage_, const Shape& sizes_, const Shape& strides_, int64_t offset_, DType dtype_);
  // Contiguous, from the start of the storage.
  TensorImpl(StoragePtr storage_, const Shape& sizes_, DType dtype_);
  bool has_stale_history() const noexcept { return view_base && history != view_base->history; }

 private:
  // For shapes without elements, or with more than can exist.
  [[gnu::cold]] void set_unusual(const Shape& sizes_);
};

// A dtype and a device: what factories need besides a shape.
struct TensorOptions {
  DType dtype = DType::Float32;
  Device device;
  bool has_dtype = false;  // whether one was named; if not, full(), arange() and tensor() take that of their numbers

  TensorOptions() = default;
  TensorOptions(DType d) : dtype(d), has_dtype(true) {}
  TensorOptions(DType d, Device where) : dtype(d), device(where), has_dtype(true) {}
  // The same, with this dtype unless one was named.
  TensorOptions or_dtype(DType otherwise) const { return {has_dtype ? dtype : otherwise, device}; }
};

// For factories: zeros({2}, dtype(kInt64)).
inline TensorOptions dtype(DType dtype) { return {dtype}; }
inline TensorOptions device(Device device) {
  TensorOptions options;
  options.device = device;
  return options;
}

// Where backward starts and what it leaves behind; see Tensor::backward. (Defined in
// autograd/backward.h.)
struct BackwardOptions;
struct MinMax;      // autograd/ops/reduce.h
struct SortResult;  // autograd/ops/indexing.h
class TensorIndex;  // autograd/ops/indexing.h

// An index with the place where it was written, for operator[].
struct IndexArg {
  int64_t index;
  SourceLocation where;
  IndexArg(int64_t i, SourceLocation w = SourceLocation::current()) noexcept : index(i), where(w) {}
};
class Tensor {
 public:
  // An undefined tensor: no shape, no data; asking for more than defined() throws ValueError.
  Tensor() noexcept = default;
  explicit Tensor(TensorImplPtr impl) noexcept : impl_(std::move(impl)) {}
  Tensor(const Tensor&) noexcept = default;
  Tensor(Tensor&&) noexcept = default;
  // To a variable only: `p.grad() = t` would change a temporary handle (say p.set_grad(t)).
  Tensor& operator=(const Tensor&) & noexcept = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  ~Tensor() = default;

  // --- metadata
  bool defined() const noexcept { return static_cast<bool>(impl_); }
  const Shape& sizes() const { return state().sizes; }
  const Shape& strides() const { return state().strides; }
  // Size along `dim` (negative counts from the end). Throws IndexError.
  int64_t size(int64_t dim) const { return sizes()[wrap_dim(dim, this->dim())]; }
  int64_t stride(int64_t dim) const { return strides()[wrap_dim(dim, this->dim())]; }
  int dim() const { return state().sizes.size(); }
  int64_t numel() const { return state().numel; }
  DType dtype() const { return state().dtype; }
  DType scalar_type() const { return dtype(); }
  Device device() const { return state().storage->device(); }
  bool is_cuda() const { return device().type == DeviceType::CUDA; }
  TensorOptions options() const { return {dtype(), device()}; }
  size_t itemsize() const { return brigade::itemsize(dtype()); }
  // Throws ShapeError if an expanded view has more bytes than fit into 64 bits.
  size_t nbytes() const { return checked_bytes(numel(), itemsize()); }
  bool is_contiguous() const { return state().contiguous; }
  int64_t storage_offset() const { return state().offset; }
  const StoragePtr& storage() const { return state().storage; }
  uint64_t id() const { return state().id; }
  uint32_t use_count() const noexcept { return impl_ ? impl_->use_count() : 0; }
  bool is_same(const Tensor& other) const noexcept { return impl_ == other.impl_; }
  TensorImpl* impl() const noexcept { return impl_.get(); }

  // Number of in-place writes that the storage has seen (PyTorch: _version).
  uint32_t version() const { return state().storage->version(); }
  void bump_version() const { state().storage->bump_version(); }

  // --- raw data
  // First element; not checked. Writing through it is invisible to the version counter: call
  // bump_version() after.
  void* raw_data() const {
    return static_cast<char*>(storage()->data()) + impl_->offset * static_cast<int64_t>(itemsize());
  }
  // Throws DTypeError when T is not the dtype of the tensor.
  template <class T>
  T* data_ptr() const {
    if (dtype_of<T> != dtype()) throw_dtype_mismatch(dtype_of<T>);
    return static_cast<T*>(raw_data());
  }
  // All elements in row-major order, converted to T (a copy; any strides; waits for the tensor's
  // device). For tests, printing and small results.
  template <class T>
  std::vector<T> to_vector(SourceLocation where = SourceLocation::current()) const;

  // --- autograd: leaves and gradients
  bool requires_grad() const noexcept {
    return impl_ && (impl_->requires_grad || (impl_->has_stale_history() && impl_->view_base->requires_grad));
  }
  // True when no recorded operation made this tensor.
  bool is_leaf() const { return !state().grad_fn && !(impl_->has_stale_history() && impl_->view_base->requires_grad); }
  // Switches recording for a leaf. Throws AutogradError on a result ("you can only change
  // requires_grad flags of leaf variables.") and DTypeError for a dtype without derivatives.
  // Remembers the call site, so that a freeze can be explained. Returns *this.
  const Tensor& requires_grad_(bool requires_grad = true, SourceLocation where = SourceLocation::current()) const;
  // The accumulated gradient; undefined when there is none.
  Tensor grad() const;
  // Replaces the gradient (an undefined tensor clears it). Shape, dtype and device must match.
  // Throws ShapeError, DTypeError, DeviceError.
  void set_grad(const Tensor& grad, SourceLocation where = SourceLocation::current()) const;
  // Accumulates the gradient of a result too, as all hooks leave it. Throws if the tensor does not require grad.
  void retain_grad() const;
  // Calls `hook` with the gradient of this tensor each time that backward computes it; a defined
  // return value replaces the gradient. Returns a handle for remove_hook. Throws AutogradError
  // "cannot register a hook on a variable that doesn't require gradient".
  uint64_t register_hook(std::function<Tensor(const Tensor& grad)> hook,
                         SourceLocation where = SourceLocation::current()) const;
  // Calls `hook` with this leaf after each backward has added to its gradient, which the hook may
  // use, change or clear. Under DDP the gradient is still local to this rank then. Throws
  // AutogradError for a result.
  uint64_t register_post_accumulate_grad_hook(std::function<void(const Tensor& leaf)> hook,
                                              SourceLocation where = SourceLocation::current()) const;
  void remove_hook(uint64_t handle) const;

  // Runs backward from this tensor (PyTorch: Tensor.backward). See autograd/backward.h for the
  // options and errors.
  void backward(SourceLocation where = SourceLocation::current()) const;
  void backward(const BackwardOptions& options, SourceLocation where = SourceLocation::current()) const;
  // The same values, cut from the history; shares the storage. The tape remembers the cut.
  Tensor detach(SourceLocation where = SourceLocation::current()) const;

  // --- autograd. The value of a tensor with one element. The tape remembers that the value left the
  // graph. Throws ShapeError.
  template <class T = double>
  T item(SourceLocation where = SourceLocation::current()) const;
  Tensor clone(SourceLocation where = SourceLocation::current()) const;
  Tensor contiguous(SourceLocation where = SourceLocation::current()) const;
  Tensor to(DType dtype, SourceLocation where = SourceLocation::current()) const;
  // Copies to another device; the gradient comes back to this one. Returns `*this` if it is there
  // already. Throws DeviceError.
  Tensor to(Device device, SourceLocation where = SourceLocation::current()) const;
  template <std::same_as<DType> D>  // so that {} means a location
  Tensor to(Device device, D dtype, SourceLocation where = SourceLocation::current()) const {
    return to(device, where).to(dtype, where);
  }
  Tensor cpu(SourceLocation where = SourceLocation::current()) const;
  Tensor cuda(int index = 0, SourceLocation where = SourceLocation::current()) const;
  // One entry of `shape` may be -1. A view where the strides allow it, a copy otherwise.
  Tensor reshape(const Shape& shape, SourceLocation where = SourceLocation::current()) const;
  // Like reshape, but throws ShapeError if a copy would be needed.
  Tensor view(const Shape& shape, SourceLocation where = SourceLocation::current()) const;
  Tensor flatten(int64_t start_dim = 0, int64_t end_dim = -1, SourceLocation where = SourceLocation::current()) const;
  Tensor permute(const Shape& dims, SourceLocation where = SourceLocation::current()) const;
  Tensor transpose(int64_t dim0, int64_t dim1, SourceLocation where = SourceLocation::current()) const;
  // Transpose of a matrix; returns a tensor with fewer dimensions unchanged.
  Tensor t(SourceLocation where = SourceLocation::current()) const;
  Tensor expand(const Shape& shape, SourceLocation where = SourceLocation::current()) const;
  Tensor unsqueeze(int64_t dim, SourceLocation where = SourceLocation::current()) const;
  // Removes all dimensions of size 1, or `dim` if its size is 1.
  Tensor squeeze(SourceLocation where = SourceLocation::current()) const;
  Tensor squeeze(int64_t dim, SourceLocation where = SourceLocation::current()) const;
  // Elements start, start+step, ... below end along dim. Negative start and end count from the end;
  // both are clamped. step >= 1.
  Tensor slice(int64_t dim, int64_t start, int64_t end, int64_t step = 1,
               SourceLocation where = SourceLocation::current()) const;
  Tensor narrow(int64_t dim, int64_t start, int64_t length, SourceLocation where = SourceLocation::current()) const;
  // One index along dim; removes the dimension.
  Tensor select(int64_t dim, int64_t index, SourceLocation where = SourceLocation::current()) const;
  // Selects along the first dimension.
  Tensor operator[](IndexArg at) const { return select(0, at.index, at.where); }
  // As in Python: x.index({0, Slice(1, 3), "..."}); see autograd/ops/indexing.h.
  Tensor index(std::initializer_list<TensorIndex> indices, SourceLocation where = SourceLocation::current()) const;
  // Over all elements, or over `dims`.
  Tensor sum(SourceLocation where = SourceLocation::current()) const;
  Tensor sum(const Dims& dims, bool keepdim = false, SourceLocation where = SourceLocation::current()) const;
  Tensor mean(SourceLocation where = SourceLocation::current()) const;
  Tensor mean(const Dims& dims, bool keepdim = false, SourceLocation where = SourceLocation::current()) const;

  // Each of these is the free function of the same name in autograd/ops/*.h, which documents its
  // rules; so are many operations that have no method.
  Tensor abs(SourceLocation where = SourceLocation::current()) const;
  Tensor neg(SourceLocation where = SourceLocation::current()) const;
  Tensor exp(SourceLocation where = SourceLocation::current()) const;
  Tensor log(SourceLocation where = SourceLocation::current()) const;
  Tensor sqrt(SourceLocation where = SourceLocation::current()) const;
  Tensor square(SourceLocation where = SourceLocation::current()) const;
  Tensor pow(Scalar exponent, SourceLocation where = SourceLocation::current()) const;
  Tensor relu(SourceLocation where = SourceLocation::current()) const;
  Tensor sigmoid(SourceLocation where = SourceLocation::current()) const;
  Tensor tanh(SourceLocation where = SourceLocation::current()) const;
  Tensor clamp(Scalar min, Scalar max, SourceLocation where = SourceLocation::current()) const;
  Tensor clamp_min(Scalar min, SourceLocation where = SourceLocation::current()) const;
  Tensor clamp_max(Scalar max, SourceLocation where = SourceLocation::current()) const;
  Tensor softmax(int64_t dim, SourceLocation where = SourceLocation::current()) const;
  Tensor log_softmax(int64_t dim, SourceLocation where = SourceLocation::current()) const;
  Tensor matmul(const Tensor& other, SourceLocation where = SourceLocation::current()) const;
  Tensor mm(const Tensor& other, SourceLocation where = SourceLocation::current()) const;
  Tensor bmm(const Tensor& other, SourceLocation where = SourceLocation::current()) const;
  Tensor max(SourceLocation where = SourceLocation::current()) const;
  Tensor min(SourceLocation where = SourceLocation::current()) const;
  MinMax max(int64_t dim, bool keepdim = false, SourceLocation where = SourceLocation::current()) const;
  MinMax min(int64_t dim, bool keepdim = false, SourceLocation where = SourceLocation::current()) const;
  Tensor argmax(SourceLocation where = SourceLocation::current()) const;
  Tensor argmax(int64_t dim, bool keepdim = false, SourceLocation where = SourceLocation::current()) const;
  Tensor argmin(SourceLocation where = SourceLocation::current()) const;
  Tensor argmin(int64_t dim, bool keepdim = false, SourceLocation where = SourceLocation::current()) const;
  Tensor norm(double p = 2, SourceLocation where = SourceLocation::current()) const;
  Tensor norm(double p, const Dims& dims, bool keepdim = false, SourceLocation where = SourceLocation::current()) const;
  // With `using namespace brigade`, a call of std(x) is ambiguous with the namespace std: use this method then.
  Tensor std(SourceLocation where = SourceLocation::current()) const;
  Tensor std(const Dims& dims, double correction = 1, bool keepdim = false,
             SourceLocation where = SourceLocation::current()) const;
  Tensor var(SourceLocation where = SourceLocation::current()) const;
  Tensor var(const Dims& dims, double correction = 1, bool keepdim = false,
             SourceLocation where = SourceLocation::current()) const;
  Tensor prod(SourceLocation where = SourceLocation::current()) const;
  Tensor any(SourceLocation where = SourceLocation::current()) const;
  Tensor all(SourceLocation where = SourceLocation::current()) const;
  Tensor cumsum(int64_t dim, SourceLocation where = SourceLocation::current()) const;
  SortResult sort(int64_t dim = -1, bool descending = false, SourceLocation where = SourceLocation::current()) const;
  SortResult topk(int64_t k, int64_t dim = -1, SourceLocation where = SourceLocation::current()) const;
  Tensor gather(int64_t dim, const Tensor& index, SourceLocation where = SourceLocation::current()) const;
  Tensor index_select(int64_t dim, const Tensor& indices, SourceLocation where = SourceLocation::current()) const;
  Tensor masked_fill(const Tensor& mask, Scalar value, SourceLocation where = SourceLocation::current()) const;
  Tensor repeat(const Shape& repeats, SourceLocation where = SourceLocation::current()) const;
  std::vector<Tensor> chunk(int64_t count, int64_t dim = 0, SourceLocation where = SourceLocation::current()) const;
  std::vector<Tensor> split(int64_t size, int64_t dim = 0, SourceLocation where = SourceLocation::current()) const;

  // In place. On a leaf that requires grad outside no_grad: AutogradError "a leaf Variable that
  // requires grad is being used in an in-place operation." Each bumps the version. Return *this.
  const Tensor& copy_(const Tensor& source, SourceLocation where = SourceLocation::current()) const;
  const Tensor& fill_(Scalar value, SourceLocation where = SourceLocation::current()) const;
  const Tensor& zero_(SourceLocation where = SourceLocation::current()) const;
  // this += alpha * other (broadcast to this)
  const Tensor& add_(const Tensor& other, Scalar alpha = 1, SourceLocation where = SourceLocation::current()) const;
  const Tensor& mul_(const Tensor& other, SourceLocation where = SourceLocation::current()) const;
  const Tensor& mul_(Scalar factor, SourceLocation where = SourceLocation::current()) const;
  const Tensor& index_put_(std::initializer_list<TensorIndex> indices, const Tensor& value,
                           SourceLocation where = SourceLocation::current()) const;
  const Tensor& index_put_(std::initializer_list<TensorIndex> indices, Scalar value,
                           SourceLocation where = SourceLocation::current()) const;
  const Tensor& add_(Scalar number, SourceLocation where = SourceLocation::current()) const;
  const Tensor& sub_(const Tensor& other, Scalar alpha = 1, SourceLocation where = SourceLocation::current()) const;
  const Tensor& sub_(Scalar number, SourceLocation where = SourceLocation::current()) const;
  const Tensor& div_(const Tensor& other, SourceLocation where = SourceLocation::current()) const;
  const Tensor& div_(Scalar number, SourceLocation where = SourceLocation::current()) const;

 private:
  TensorImpl& state() const {
    if (!impl_) [[unlikely]]
      throw_undefined();
    return *impl_;
  }
  [[noreturn]] static void throw_undefined();
  [[noreturn]] void throw_dtype_mismatch(DType asked) const;

  TensorImplPtr impl_;
};

namespace detail {
// A view of the same shape and strides over a copy of its memory on the CPU; `tensor` itself when
// it is there.
Tensor on_host(const Tensor& tensor);
// The element at a row-major position, read as double or int64. Copies a tensor that is on a device.
double element_as_double(const Tensor& tensor, int64_t position);
int64_t element_as_int(const Tensor& tensor, int64_t position);
// Notifies the listener (read_listener.h) that the value of `tensor` was read as a number. Throws
// ShapeError unless there is one element.
void note_item(const Tensor& tensor, SourceLocation where);
// The same for all its elements.
void note_to_vector(const Tensor& tensor, SourceLocation where);

// to_vector() without notifying the listener: for the library's own reads.
template <class T>
std::vector<T> elements_of(const Tensor& tensor) {
  const Tensor host = on_host(tensor);
  std::vector<T> values(static_cast<size_t>(tensor.numel()));
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    if constexpr (std::is_integral_v<T>) {
      values[i] = static_cast<T>(detail::element_as_int(host, i));
    } else {
      values[i] = static_cast<T>(detail::element_as_double(host, i));
    }
  }
  return values;
}
}  // namespace detail

template <class T>
std::vector<T> Tensor::to_vector(SourceLocation where) const {
  detail::note_to_vector(*this, where);
  return detail::elements_of<T>(*this);
}

template <class T>
T Tensor::item(SourceLocation where) const {
  detail::note_item(*this, where);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(detail::element_as_int(*this, 0));
  } else {
    return static_cast<T>(detail::element_as_double(*this, 0));
  }
}

// "float32 [2, 3]", "float32 [2, 3] on cuda:0" or "undefined"; for messages.
std::string describe(const Tensor& tensor);
// Values in nested brackets, long dimensions shortened.
std::string to_string(const Tensor& tensor);
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

// An argument with the place where it was written: gives operators, which cannot have default
// arguments, the caller's line.
struct TensorArg {
  const Tensor& tensor;
  SourceLocation where;
  TensorArg(const Tensor& t, SourceLocation w = SourceLocation::current()) noexcept : tensor(t), where(w) {}
};

}  // namespace brigade
