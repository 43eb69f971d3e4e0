// Reads elements of either byte order and either order of dimensions, and writes them row-major.
#include <brigade/core/npy.h>

#include <brigade/core/atomic_file.h>
#include <brigade/core/detail/file_formats.h>
#include <brigade/core/detail/files.h>
#include <brigade/core/factory.h>
#include <brigade/core/view.h>

#include <algorithm>
#include <bit>
#include <optional>

namespace brigade {

static_assert(std::endian::native == std::endian::little, "elements are written as they lie in memory");

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// NumPy itself asks before it reads more than 10,000 bytes; this limit allows any file that NumPy
// writes for these dtypes.
constexpr uint64_t kMaxHeader = 1 << 20;

struct Element {
  DType dtype;
  bool swapped = false;  // big endian
};

// "f4" -> float32
std::optional<DType> dtype_of_code(std::string_view code) {
  if (code == "f8") return kFloat64;
  if (code == "f4") return kFloat32;
  if (code == "f2") return kFloat16;
  if (code == "i8") return kInt64;
  if (code == "i4") return kInt32;
  if (code == "u1") return kUInt8;
  if (code == "b1") return kBool;
  return std::nullopt;
}

const char* descr_of(DType dtype) {
  switch (dtype) {
    case DType::Float64: return "<f8";
    case DType::Float32: return "<f4";
    case DType::Float16: return "<f2";
    case DType::Int64: return "<i8";
    case DType::Int32: return "<i4";
    case DType::UInt8: return "|u1";
    case DType::Bool: return "|b1";
    case DType::BFloat16: break;
  }
  throw DTypeError(
      "save_npy: NumPy has no bfloat16; convert with .to(kFloat32), which keeps the values, or use save_safetensors");
}

Element element_of(const std::string& descr, const std::string& path) {
  const char order = descr.empty() ? '\0' : descr[0];
  const std::string_view code = std::string_view(descr).substr(descr.empty() ? 0 : 1);
  if (descr.empty() || std::string_view("<>|=").find(order) == std::string_view::npos) {
    throw IoError("{}: 'descr' is {}; expected a byte order and a type, such as '<f4'", path, detail::in_quotes(descr));
  }
  const std::optional<DType> dtype = dtype_of_code(code);
  if (!dtype) {
    throw DTypeError(
        "{}: 'descr' is {}; expected one of f8, f4, f2, i8, i4, u1, b1: convert the array "
        "with .astype before it is saved",
        path, detail::in_quotes(descr));
  }
  if (order == '|' && itemsize(*dtype) > 1)
    throw IoError("{}: 'descr' is {}; expected a byte order, < or >, for {}", path, detail::in_quotes(descr),
                  name(*dtype));
  return {*dtype, order == '>'};
}

std::string text_of(const std::vector<int64_t>& sizes) {
  std::string text = "(";
  for (size_t i = 0; i < sizes.size(); ++i)
    text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + (sizes.size() == 1 ? ",)" : ")");
}

// The product of the sizes other than 0 must fit too: strides are such products.
uint64_t bytes_of(const std::vector<int64_t>& sizes, DType dtype, const std::string& path) {
  int64_t bytes = static_cast<int64_t>(itemsize(dtype));
  bool empty = false;
  for (const int64_t size : sizes) {
    empty = empty || size == 0;
    if (size != 0 && __builtin_mul_overflow(bytes, size, &bytes))
      throw IoError("{}: 'shape' {} of {} overflows; expected less than 2^63 bytes", path, text_of(sizes), name(dtype));
  }
  return empty ? 0 : static_cast<uint64_t>(bytes);
}

void swap_bytes(void* data, size_t itemsize, size_t count) {
  auto* bytes = static_cast<unsigned char*>(data);
  for (size_t i = 0; i < count; ++i, bytes += itemsize)
    std::reverse(bytes, bytes + itemsize);
}

Tensor reversed(const Tensor& tensor) {
  Shape dims;
  for (int i = tensor.dim() - 1; i >= 0; --i)
    dims.push_back(i);
  return view::permute(tensor, dims);
}

}  // namespace

Tensor load_npy(const std::string& path) {
  const detail::InputFile file(path);
  const uint64_t size = file.size();
  unsigned char start[12] = {};
  file.read(0, start, static_cast<size_t>(std::min<uint64_t>(size, sizeof start)));
  if (!std::equal(kMagic.begin(), kMagic.end(), reinterpret_cast<const char*>(start)) || size < 8)
    throw IoError("{}: the file does not begin with \"\\x93NUMPY\" and a version; expected an npy file", path);
  const int major = start[6];
  const int minor = start[7];
  if (major < 1 || major > 3 || minor != 0) {
    throw IoError("{}: version {}.{}; expected 1.0, 2.0 or 3.0", path, major, minor);
  }
  const uint64_t header_begin = major == 1 ? 10 : 12;
  if (size < header_begin) {
    throw IoError("{}: the file has {} bytes; expected at least {}", path, size, header_begin);
  }
  uint64_t length = 0;
  for (uint64_t i = header_begin; i > 8; --i)
    length = length << 8 | start[i - 1];
  const uint64_t most = std::min(kMaxHeader, size - header_begin);
  if (length > most) {
    throw IoError("{}: header length {}; expected at most {}{}", path, length, most,
                  most == size - header_begin ? ", what the file holds" : "");
  }
  std::string text(static_cast<size_t>(length), '\0');
  file.read(header_begin, text.data(), text.size());
  const detail::NpyHeader header = detail::parse_npy_header(text, path);
  const Element element = element_of(header.descr, path);
  const uint64_t data_begin = header_begin + length;
  const uint64_t expected = bytes_of(header.shape, element.dtype, path);
  if (expected != size - data_begin) {
    throw IoError("{}: {} bytes follow the header; expected {} for {} of shape {}", path, size - data_begin, expected,
                  header.descr, text_of(header.shape));
  }
  Shape sizes(header.shape);
  if (header.fortran_order) std::reverse(sizes.begin(), sizes.end());
  const Tensor result = empty(sizes, element.dtype);
  file.read(data_begin, result.raw_data(), result.nbytes());
  if (element.swapped) swap_bytes(result.raw_data(), result.itemsize(), static_cast<size_t>(result.numel()));
  detail::check_bool_bytes(element.dtype, result.raw_data(), result.nbytes(), path);
  return header.fortran_order ? reversed(result) : result;
}

void save_npy(const std::string& path, const Tensor& tensor) {
  if (!tensor.defined()) throw ValueError("save_npy: the tensor is undefined; expected a tensor");
  detail::NpyHeader header{descr_of(tensor.dtype()), false, {tensor.sizes().begin(), tensor.sizes().end()}};
  header.fortran_order = tensor.numel() > 0 && !tensor.is_contiguous() && reversed(tensor).is_contiguous();
  std::string text = detail::npy_header_text(header);
  // Pads with spaces and a newline, so that the data begins at a multiple of 64.
  constexpr size_t kAlignment = 64;
  constexpr size_t kBegin = 10;
  const size_t whole = (kBegin + text.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  text.resize(whole - kBegin - 1, ' ');
  text += '\n';
  std::string start(kMagic);
  start += {1, 0, static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)};
  const Tensor data = detail::row_major_on_host(header.fortran_order ? reversed(tensor) : tensor);
  AtomicFile file(path);
  file.write(start.data(), start.size());
  file.write(text.data(), text.size());
  file.write(data.raw_data(), data.nbytes());
  file.commit();
}

}  // namespace brigade
