// The 64-bit hash FNV-1a (Fowler, Noll, Vo): to compare texts between ranks, not to keep them apart
// from an adversary.
#pragma once

#include <cstdint>
#include <string_view>

namespace brigade {

inline constexpr uint64_t kFnvStart = 0xCBF29CE484222325U;

constexpr uint64_t fnv_step(uint64_t hash, uint64_t value) noexcept { return (hash ^ value) * 0x100000001B3U; }

constexpr uint64_t fnv(std::string_view text, uint64_t hash = kFnvStart) noexcept {
  for (const char c : text)
    hash = fnv_step(hash, static_cast<unsigned char>(c));
  return hash;
}

}  // namespace brigade
