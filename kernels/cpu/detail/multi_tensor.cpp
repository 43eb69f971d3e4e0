// Optimizer updates on the CPU: float32 in place, half types through a small float32 buffer.
#include <brigade/kernels/cpu/detail/multi_tensor.h>

#include <brigade/kernels/cpu/detail/conversion.h>

#include <algorithm>

namespace brigade::kernels::cpu {
namespace {

constexpr size_t kMostArrays = 5;
constexpr int64_t kBlock = 1024;

// Elements [begin, end) of arrays of a half type, through float32.
void update_halves(const FloatUpdate& update, DType dtype, char* const* arrays, size_t count, int64_t begin,
                   int64_t end) {
  float room[kMostArrays][kBlock];
  float* rows[kMostArrays];
  for (size_t a = 0; a < count; ++a)
    rows[a] = room[a];
  for (; begin < end; begin += kBlock) {
    const int64_t n = std::min(kBlock, end - begin);
    const int64_t at = begin * static_cast<int64_t>(itemsize(dtype));
    for (size_t a = 0; a < count; ++a)
      convert(dtype, arrays[a] + at, kFloat32, room[a], n);
    update_floats(update, rows, 0, n);
    for (size_t a = 0; a < count; ++a) {
      if (a != 1) convert(kFloat32, room[a], dtype, arrays[a] + at, n);  // the gradient is not written
    }
  }
}

}  // namespace

void update_rows(std::initializer_list<std::span<const Tensor>> lists, const FloatUpdate& floats) {
  const std::span<const Tensor> params = *lists.begin();
  const size_t count = lists.size();
  std::vector<int64_t> numels;
  for (const Tensor& param : params)
    numels.push_back(param.numel());
  const auto body = [&](size_t row, int64_t begin, int64_t end) {
    float* arrays[kMostArrays];
    char* halves[kMostArrays];
    for (size_t a = 0; a < count; ++a) {
      void* const data = lists.begin()[a][row].raw_data();
      arrays[a] = static_cast<float*>(data);
      halves[a] = static_cast<char*>(data);
    }
    if (params[row].dtype() == kFloat32) {
      update_floats(floats, arrays, begin, end);
    } else {
      update_halves(floats, params[row].dtype(), halves, count, begin, end);
    }
  };
  for_pieces(numels, body, 2);
}

}  // namespace brigade::kernels::cpu
