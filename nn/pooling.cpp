// Checks of windows and strides, forward and printed options of the pooling layers.
#include <brigade/nn/pooling.h>

#include <brigade/nn/detail/options.h>

#include <algorithm>

namespace brigade::nn {
namespace {

int64_t smallest(int64_t size) { return size; }
int64_t smallest(Size2 size) { return std::min(size[0], size[1]); }

template <class S, class Options>
void check_options(const char* layer, S kernel_size, const Options& o) {
  const S stride = o.stride.value_or(kernel_size);
  const bool fits = smallest(kernel_size) >= 1 && smallest(stride) >= 1;
  if constexpr (requires { o.dilation; }) {
    if (fits && smallest(o.dilation) >= 1) return;
    throw ValueError("{}: kernel_size, stride and dilation must be at least 1, got {}, {} and {}", layer, kernel_size,
                     stride, o.dilation);
  } else {
    if (!fits)
      throw ValueError("{}: kernel_size and stride must be at least 1, got {} and {}", layer, kernel_size, stride);
  }
}

void check_output(const char* layer, int64_t size) {
  if (size < 1) throw ValueError("{}: output_size must be at least 1, got {}", layer, size);
}
void check_output(const char* layer, const PoolOutputSize& size) {
  for (const auto& value : size.values)
    check_output(layer, value.value_or(1));
}

template <class S, class Options>
std::string options_in_words(const S& kernel_size, const Options& o) {
  using std::to_string;
  std::string text = "kernel_size=" + to_string(kernel_size) + ", stride=" + to_string(o.stride.value_or(kernel_size)) +
                     ", padding=" + to_string(o.padding);
  if constexpr (requires { o.dilation; })
    text += ", dilation=" + to_string(o.dilation) + ", ceil_mode=" + detail::text_of(o.ceil_mode);
  return text;
}
std::string options_in_words(int64_t size) { return "output_size=" + std::to_string(size); }
std::string options_in_words(const PoolOutputSize& size) {
  const auto text = [](std::optional<int64_t> value) { return value ? std::to_string(*value) : "none"; };
  return "output_size=[" + text(size.values[0]) + ", " + text(size.values[1]) + "]";
}

}  // namespace

MaxPool2dImpl::MaxPool2dImpl(Size2 kernel, const MaxPool2dOptions& o) : kernel_size(kernel), options(o) {
  check_options("MaxPool2d", kernel, o);
}
Tensor MaxPool2dImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return max_pool2d(x, kernel_size, options, where);
}
std::string MaxPool2dImpl::extra() const { return options_in_words(kernel_size, options); }

AvgPool2dImpl::AvgPool2dImpl(Size2 kernel, const AvgPool2dOptions& o) : kernel_size(kernel), options(o) {
  check_options("AvgPool2d", kernel, o);
  if (o.divisor_override == 0) throw ValueError("AvgPool2d: divisor_override must not be 0");
}
Tensor AvgPool2dImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return avg_pool2d(x, kernel_size, options, where);
}
std::string AvgPool2dImpl::extra() const { return options_in_words(kernel_size, options); }

MaxPool1dImpl::MaxPool1dImpl(int64_t kernel, const MaxPool1dOptions& o) : kernel_size(kernel), options(o) {
  check_options("MaxPool1d", kernel, o);
}
Tensor MaxPool1dImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return max_pool1d(x, kernel_size, options, where);
}
std::string MaxPool1dImpl::extra() const { return options_in_words(kernel_size, options); }

AvgPool1dImpl::AvgPool1dImpl(int64_t kernel, const AvgPool1dOptions& o) : kernel_size(kernel), options(o) {
  check_options("AvgPool1d", kernel, o);
}
Tensor AvgPool1dImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return avg_pool1d(x, kernel_size, options, where);
}
// Prints numbers in brackets, as PyTorch does for this layer.
std::string AvgPool1dImpl::extra() const {
  return "kernel_size=[" + std::to_string(kernel_size) + "], stride=[" +
         std::to_string(options.stride.value_or(kernel_size)) + "], padding=[" + std::to_string(options.padding) + "]";
}

namespace detail {

template <class S>
AdaptivePool<S>::AdaptivePool(const char* layer, S size) : output_size(size) {
  check_output(layer, size);
}
template <class S>
std::string AdaptivePool<S>::extra() const {
  return options_in_words(output_size);
}
template struct AdaptivePool<int64_t>;
template struct AdaptivePool<PoolOutputSize>;

}  // namespace detail

}  // namespace brigade::nn
