// Quotes of text from files, and elements in row-major order with valid bools.
#include <brigade/core/detail/file_formats.h>

#include <brigade/core/factory.h>

#include <algorithm>
#include <cstring>

namespace brigade::detail {

// --- Non-printable bytes are escaped, and a long text is shortened in the middle.

std::string in_quotes(std::string_view text) {
  constexpr size_t kLongest = 80;
  constexpr const char* kDigits = "0123456789abcdef";
  std::string result = "\"";
  const auto append = [&](std::string_view part) {
    for (const char character : part) {
      const auto byte = static_cast<unsigned char>(character);
      if (byte < 0x20 || byte > 0x7e) {
        result += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
      } else {
        if (character == '"' || character == '\\') result += '\\';
        result += character;
      }
    }
  };
  if (text.size() <= kLongest) {
    append(text);
  } else {
    append(text.substr(0, kLongest / 2));
    result += "...";
    append(text.substr(text.size() - kLongest / 2));
  }
  return result + "\"";
}

// --- Copies a tensor of any strides into row-major order, and finds bytes that are not valid bools.

namespace {

char* copy_rows(const Tensor& tensor, int dim, const char* from, char* to) {
  const auto itemsize = static_cast<int64_t>(tensor.itemsize());
  if (dim == tensor.dim()) {
    std::memcpy(to, from, static_cast<size_t>(itemsize));
    return to + itemsize;
  }
  const int64_t size = tensor.sizes()[dim];
  const int64_t stride = tensor.strides()[dim];
  if (dim == tensor.dim() - 1 && stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(size * itemsize));
    return to + size * itemsize;
  }
  for (int64_t i = 0; i < size; ++i)
    to = copy_rows(tensor, dim + 1, from + i * stride * itemsize, to);
  return to;
}

}  // namespace

Tensor row_major_on_host(const Tensor& tensor) {
  const Tensor host = on_host(tensor);
  if (host.is_contiguous()) return host;
  Tensor result = empty(host.sizes(), host.dtype());
  copy_rows(host, 0, static_cast<const char*>(host.raw_data()), static_cast<char*>(result.raw_data()));
  return result;
}

void check_bool_bytes(DType dtype, const void* data, size_t count, const std::string& what) {
  if (dtype != kBool) return;
  const auto* bytes = static_cast<const unsigned char*>(data);
  const auto* wrong = std::find_if(bytes, bytes + count, [](unsigned char byte) { return byte > 1; });
  if (wrong == bytes + count) return;
  throw IoError("{}: byte {} of its bool data is {}, expected 0 or 1", what, wrong - bytes, *wrong);
}

}  // namespace brigade::detail
