// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011).
//
// A stream is (seed, offset): number i of a stream is a pure function of seed, offset and i, so
// that any device and any number of threads give the same values, and a mask can be recomputed
// instead of stored.
#pragma once

#include <array>
#include <cstdint>

namespace brigade {

// Four 32-bit words from a 128-bit counter and a 64-bit key; ten rounds.
constexpr std::array<uint32_t, 4> philox4x32_10(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// The words in device memory that a replay of a captured CUDA graph changes: the seed, and how far
// the stream has moved since the capture.
struct PhiloxReplay {
  uint64_t seed = 0;
  uint64_t moved = 0;
};

// One position in a stream: what a kernel needs to generate its numbers. Element i uses word i % 4
// of block offset + i / 4.
struct PhiloxState {
  uint64_t seed = 0;
  uint64_t offset = 0;
  const PhiloxReplay* replay = nullptr;  // null unless reserved while a CUDA graph was captured

  // A kernel on a device generates its numbers from now() instead of from the state itself, so that
  // each replay gets the numbers that the generator has advanced to.
  constexpr PhiloxState now() const noexcept {
    return replay ? PhiloxState{replay->seed, offset + replay->moved, nullptr} : *this;
  }
  constexpr std::array<uint32_t, 4> block(uint64_t index) const noexcept {
    const uint64_t position = offset + index;
    return philox4x32_10({static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), 0, 0},
                         {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  }
  // Word of element i.
  constexpr uint32_t word(uint64_t i) const noexcept { return block(i / 4)[i % 4]; }
};

// Uniform in [0, 1) with 24 bits; the same on every device.
constexpr float uniform_from_word(uint32_t word) noexcept { return static_cast<float>(word >> 8) * 0x1p-24f; }

// A stream that remembers how far it was used. Not thread-safe: each thread (each rank) has its own. (PyTorch's
// Generator; that name is left free for the networks of programs with `using namespace brigade`.)
class RandomGenerator {
 public:
  explicit RandomGenerator(uint64_t seed = 0) noexcept : state_{seed, 0, nullptr} {}
  void manual_seed(uint64_t seed) noexcept { state_ = {seed, 0, nullptr}; }
  uint64_t seed() const noexcept { return state_.seed; }
  uint64_t offset() const noexcept { return state_.offset; }
  void set_offset(uint64_t offset) noexcept { state_.offset = offset; }
  // Reserves numbers for `count` elements and returns where they start.
  PhiloxState reserve(uint64_t count) noexcept {
    const PhiloxState state = state_;
    state_.offset += (count + 3) / 4;
    return state;
  }

  // For cuda::Graph, while it captures: numbers reserved from here on refer to these words. Copies
  // of the generator do so as well; a new seed does not.
  void set_replay(const PhiloxReplay* words) noexcept { state_.replay = words; }
  const PhiloxReplay* replay() const noexcept { return state_.replay; }

 private:
  PhiloxState state_;
};

// The generator of the calling thread. Unseeded threads draw different numbers: the first thread
// that calls this has seed 0, the next one seed 1, and so on. Ranks that are threads have their
// rank as seed (dist::run_threads).
RandomGenerator& default_generator() noexcept;
// Seeds the generator of the calling thread only. As in PyTorch, ranks that all pass the same
// number draw the same dropout masks: seed with one number before the model is made, and with
// number + rank after.
void manual_seed(uint64_t seed) noexcept;

}  // namespace brigade
