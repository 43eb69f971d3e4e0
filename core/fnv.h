// Hashes for comparison between ranks, not safe against an adversary: 64-bit FNV-1a (Fowler, Noll, Vo) of texts, and a
// mixer of one number.
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

// Every bit of the result depends on every bit of x, so results may be added up. The finalizer of splitmix64 (Steele,
// Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014); 0 gives 0.
constexpr uint64_t mix(uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

}  // namespace brigade
