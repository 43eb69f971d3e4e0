// Sorting on the CPU. Each slice becomes entries of a key (common/indexing.h) and a position, which order like the
// elements and are all different, so that any sorting algorithm is stable. Short slices are sorted by comparison, long
// ones by a radix sort from the lowest byte of the key, skipping bytes in which all keys agree.
#include <brigade/kernels/indexing.h>

#include <brigade/kernels/common/indexing.h>
#include <brigade/kernels/cpu/detail/parallel.h>

#include <algorithm>
#include <array>
#include <vector>

namespace brigade::kernels {
namespace {

// A key of 32 bits above a position of 32 bits, in one number.
struct PackedEntry {
  uint64_t bits;
  PackedEntry() = default;
  PackedEntry(uint32_t key, int64_t position)
      : bits(static_cast<uint64_t>(key) << 32 | static_cast<uint64_t>(position)) {}
  bool operator<(const PackedEntry& other) const { return bits < other.bits; }
  uint64_t key() const { return bits >> 32; }
  int64_t position() const { return static_cast<int64_t>(bits & 0xffffffffU); }
  static constexpr int kKeyBytes = 4;
};
struct WideEntry {
  uint64_t bits;
  int64_t at;
  WideEntry() = default;
  WideEntry(uint64_t key, int64_t position) : bits(key), at(position) {}
  bool operator<(const WideEntry& other) const { return bits != other.bits ? bits < other.bits : at < other.at; }
  uint64_t key() const { return bits; }
  int64_t position() const { return at; }
  static constexpr int kKeyBytes = 8;
};

constexpr int64_t kShortSlice = 1024;

// Entries start in the order of their positions; each pass is stable.
template <class Entry>
void radix_sort(std::vector<Entry>& entries, std::vector<Entry>& room) {
  constexpr int kBytes = Entry::kKeyBytes;
  std::array<std::array<uint32_t, 256>, kBytes> counts{};
  for (const Entry& entry : entries) {
    for (int b = 0; b < kBytes; ++b)
      ++counts[b][entry.key() >> (8 * b) & 255];
  }
  room.resize(entries.size());
  for (int b = 0; b < kBytes; ++b) {
    auto& places = counts[b];
    if (places[entries[0].key() >> (8 * b) & 255] == entries.size()) continue;
    uint32_t before = 0;
    for (uint32_t& place : places) {
      const uint32_t count = place;
      place = before;
      before += count;
    }
    for (const Entry& entry : entries)
      room[places[entry.key() >> (8 * b) & 255]++] = entry;
    entries.swap(room);
  }
}

// Sorts the first `kept` entries of the order to the front.
template <class Entry>
void order(std::vector<Entry>& entries, std::vector<Entry>& room, int64_t kept) {
  const auto count = static_cast<int64_t>(entries.size());
  const auto middle = entries.begin() + kept;
  if (kept * 64 <= count) {
    std::partial_sort(entries.begin(), middle, entries.end());
  } else if (kept < count) {
    std::nth_element(entries.begin(), middle, entries.end());
    std::sort(entries.begin(), middle);
  } else if (count <= kShortSlice) {
    std::sort(entries.begin(), entries.end());
  } else {
    radix_sort(entries, room);
  }
}

template <class T>
void sort_slices(const SortPlan& plan, bool descending) {
  if (plan.kept == 0) return;
  const T* const x = static_cast<const T*>(plan.x.raw_data());
  T* const values = static_cast<T*>(plan.result.values.raw_data());
  auto* const indices = plan.result.indices.data_ptr<int64_t>();
  const auto run = [&]<class Entry>(Entry) {
    cpu::parallel_for(
        plan.outer * plan.inner,
        [&](int64_t begin, int64_t end) {
          std::vector<Entry> entries;
          std::vector<Entry> room;
          for (int64_t slice = begin; slice < end; ++slice) {
            const int64_t o = slice / plan.inner;
            const int64_t i = slice % plan.inner;
            const T* const from = x + o * plan.length * plan.inner + i;
            entries.clear();
            for (int64_t j = 0; j < plan.length; ++j)
              entries.emplace_back(sort_key_of(from[j * plan.inner], descending), j);
            order(entries, room, plan.kept);
            const int64_t to = o * plan.kept * plan.inner + i;
            for (int64_t j = 0; j < plan.kept; ++j) {
              const int64_t position = entries[static_cast<size_t>(j)].position();
              values[to + j * plan.inner] = from[position * plan.inner];
              indices[to + j * plan.inner] = position;
            }
          }
        },
        8 * plan.length);
  };
  if constexpr (sizeof(T) == 8) {
    run(WideEntry{});
  } else if (plan.length <= 0xffffffffLL) {
    run(PackedEntry{});
  } else {
    run(WideEntry{});
  }
}

Sorted sort_cpu(const Tensor& x, int dim, bool descending) {
  const SortPlan plan = prepare_sort(x, dim);
  visit_dtype(x.dtype(), [&]<class T>() { sort_slices<T>(plan, descending); });
  return plan.result;
}

Sorted topk_cpu(const Tensor& x, int64_t k, int dim, bool largest) {
  const SortPlan plan = prepare_topk(x, k, dim);
  visit_dtype(x.dtype(), [&]<class T>() { sort_slices<T>(plan, largest); });
  return plan.result;
}

}  // namespace

constinit Kernel<Sorted(const Tensor&, int, bool)> sort("sort", &sort_cpu);
constinit Kernel<Sorted(const Tensor&, int64_t, int, bool)> topk("topk", &topk_cpu);

}  // namespace brigade::kernels
