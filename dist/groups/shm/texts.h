// Any number of texts in a fixed-size buffer in shared memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace brigade::dist::shm {

// Texts are stored one after another and read in the same order. They are informational: a text that does not fit is
// truncated and ends in "...", and one that does not fit at all reads as "...". No constructor writes to the buffer, so
// that memory that holds many of them costs nothing until it is used.
template <size_t kBytes>
struct Texts {
  static constexpr std::string_view kCut = "...";

  uint32_t used;
  char room[kBytes];

  void clear() noexcept { used = 0; }
  void add(std::string_view text) noexcept {
    uint16_t length = 0;
    if (used + sizeof(length) > kBytes) return;
    const size_t left = std::min<size_t>(kBytes - used - sizeof(length), UINT16_MAX);
    const bool is_cut = text.size() > left;
    length = static_cast<uint16_t>(is_cut ? left : text.size());
    char* const at = room + used;
    std::memcpy(at, &length, sizeof(length));
    if (length > 0) std::memcpy(at + sizeof(length), text.data(), length);
    if (is_cut && length >= kCut.size())
      std::memcpy(at + sizeof(length) + length - kCut.size(), kCut.data(), kCut.size());
    used += static_cast<uint32_t>(sizeof(length) + length);
  }

  // Reads what add() has written. Does not trust data from another process: never reads outside the buffer.
  class Reader {
   public:
    explicit Reader(const Texts& texts) noexcept : texts_(texts) {}
    std::string next() {
      uint16_t length = 0;
      const size_t end = std::min<size_t>(texts_.used, kBytes);
      if (at_ + sizeof(length) > end) return std::string(kCut);
      std::memcpy(&length, texts_.room + at_, sizeof(length));
      at_ += sizeof(length);
      const size_t taken = std::min<size_t>(length, end - at_);
      std::string text(texts_.room + at_, taken);
      at_ += taken;
      return text;
    }

   private:
    const Texts& texts_;
    size_t at_ = 0;
  };
};

}  // namespace brigade::dist::shm
