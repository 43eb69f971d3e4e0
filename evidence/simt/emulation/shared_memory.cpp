#include "shared_memory.h"

#include "tsan.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace simt::detail {
namespace {

// Filled with NaN, and of exactly this size, so that the address sanitizer detects an access one past the end.
void* poisoned(size_t bytes) {
  // To the thread sanitizer, both the allocation and the fill are writes that the block's other threads do not
  // synchronize with.
  if (tsan::on()) AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  void* data = nullptr;
  if (posix_memalign(&data, 16, bytes) != 0) throw std::bad_alloc();
  std::memset(data, 0xff, bytes);
  if (tsan::on()) AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  return data;
}

}  // namespace

SharedMemory::~SharedMemory() {
  end_block();
  end_launch();
}

void SharedMemory::begin_block(size_t dynamic_bytes) {
  dynamic_ = dynamic_bytes == 0 ? nullptr : poisoned(dynamic_bytes);
}

void SharedMemory::end_block() {
  for (const Array& array : arrays_)
    finished_.push_back(array.data);
  arrays_.clear();
  if (dynamic_ != nullptr) finished_.push_back(dynamic_);
  dynamic_ = nullptr;
  static_bytes_ = 0;
  if (!tsan::on()) end_launch();
}

void SharedMemory::end_launch() {
  for (void* data : finished_)
    std::free(data);
  finished_.clear();
}

void* SharedMemory::array(const void* site, size_t bytes) {
  for (const Array& array : arrays_) {
    if (array.site == site) return array.data;
  }
  static_bytes_ += bytes;
  if (static_bytes_ > kDefaultBytes) return nullptr;
  void* const data = poisoned(bytes);
  arrays_.push_back({site, data});
  return data;
}

}  // namespace simt::detail
