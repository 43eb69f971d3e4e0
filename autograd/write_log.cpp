// A ring of the thread's latest writes, searched for those that overlap a tensor's bytes.
#include <brigade/autograd/write_log.h>

#include <algorithm>
#include <array>

namespace brigade::autograd {

namespace {

struct Log {
  std::array<Write, kWritesKept> ring;
  uint64_t count = 0;
};
thread_local Log log;

// Bytes from the first to the last element.
std::pair<int64_t, int64_t> extent(const Tensor& tensor) {
  const auto size = static_cast<int64_t>(tensor.itemsize());
  int64_t last = 0;
  for (int d = 0; d < tensor.dim(); ++d)
    last += std::max<int64_t>(0, tensor.sizes()[d] - 1) * tensor.strides()[d];
  const int64_t begin = tensor.storage_offset() * size;
  return {begin, begin + (last + 1) * size};
}

}  // namespace

void note_write(const Tensor& tensor, const char* op, SourceLocation where) {
  if (tensor.storage()->home() == nullptr || tensor.numel() == 0) return;
  const auto [begin, end] = extent(tensor);
  const uint64_t number = ++log.count;
  log.ring[number % kWritesKept] = {tensor.storage().get(), begin, end, op, where, number};
}

uint64_t writes_so_far() noexcept { return log.count; }

std::vector<Write> writes_to(const Tensor& tensor, uint64_t since) {
  std::vector<Write> found;
  if (log.count <= since) return found;
  const auto [begin, end] = extent(tensor);
  const uint64_t oldest = log.count > kWritesKept ? log.count - kWritesKept + 1 : 1;
  for (uint64_t number = std::max(since + 1, oldest); number <= log.count; ++number) {
    const Write& write = log.ring[number % kWritesKept];
    if (write.storage == tensor.storage().get() && write.begin < end && begin < write.end) found.push_back(write);
  }
  return found;
}

}  // namespace brigade::autograd
