// Reads the bytes as an npy file; the header of what was read is written and read again.
#include "input.h"

#include <brigade/core/detail/file_formats.h>
#include <brigade/core/npy.h>

using namespace brigade;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::run(data, size, [&](const std::string& path) {
    const Tensor tensor = load_npy(path);
    fuzz::require(tensor.nbytes() <= size, "no more memory than the file has bytes");
    tensor.to_vector<double>();
    const detail::NpyHeader header{"<f4", !tensor.is_contiguous(), {tensor.sizes().begin(), tensor.sizes().end()}};
    const detail::NpyHeader again = detail::parse_npy_header(detail::npy_header_text(header), path);
    fuzz::require(
        again.descr == header.descr && again.fortran_order == header.fortran_order && again.shape == header.shape,
        "the header comes back");
  });
}
