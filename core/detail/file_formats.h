// What the readers and writers of npy and safetensors share: quotes in messages, the layout of elements; and the header
// of npy.
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::detail {

// --- Quotes text from a file for use in a message.

// "weight": in quotes, bytes outside printable ASCII as \xNN, long text cut in its middle.
std::string in_quotes(std::string_view text);

// --- The elements of a tensor as files store them: on the host, in row-major order, and with valid bool bytes.

// Returns `tensor` itself if it is on the host and in row-major order already.
Tensor row_major_on_host(const Tensor& tensor);

// bool has two values; a byte that is neither 0 nor 1 would be undefined behaviour wherever it is
// read. Throws IoError that begins with `what`. Does nothing for other dtypes.
void check_bool_bytes(DType dtype, const void* data, size_t count, const std::string& what);

// --- Parses and writes the header of an npy file, which is a Python dictionary.

struct NpyHeader {
  std::string descr;  // "<f4"
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// Throws IoError whose text begins with `path`.
NpyHeader parse_npy_header(std::string_view text, const std::string& path);

// Formats the header as NumPy does, without padding, but with room for the outermost size to grow in place.
std::string npy_header_text(const NpyHeader& header);

}  // namespace brigade::detail
