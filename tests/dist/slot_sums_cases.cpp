// Sums of squares that an all_reduce computes along the way: of every rank's slots, the same on all ranks, without an
// effect on the mean.
#include "rank_case.h"

#include <brigade/core/view.h>
#include <brigade/dist/groups/slot_sums.h>
#include <brigade/kernels/factory.h>

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <memory>

namespace brigade::test::slot_sums_cases {
// Slots that lie in one share, in several, end within a cache line, and hold nothing.
const std::vector<int64_t> kEdges = {0, 1, 1, 40, 48, 5000, 5003, 9000, 17000, 17001};
constexpr int64_t kCount = 17040;  // flags and words follow

double value(int rank, int64_t i) { return static_cast<double>((i * 7 + rank * 13) % 9 - 4) * 0.25; }

double expected_sum(int rank, size_t slot) {
  double sum = 0;
  for (int64_t i = kEdges[slot]; i < kEdges[slot + 1]; ++i)
    sum += value(rank, i) * value(rank, i);
  return sum;
}

void set(const Tensor& tensor, int64_t at, double to) {
  visit_floating(tensor.dtype(), "set", [&]<class T>() {
    static_cast<T*>(tensor.raw_data())[at] = static_cast<T>(static_cast<compute_type<T>>(to));
  });
}

struct Bucket {
  std::shared_ptr<dist::SlotSums> sums;
  Tensor elements;
};

Bucket bucket_of(dist::ProcessGroup& group, DType dtype) {
  auto sums = std::make_shared<dist::SlotSums>(group.rank(), group.size(), dtype, kCount, kEdges);
  const Tensor memory = group.allocate(sums->numel_with_room(), dtype);
  sums->place_in(memory);
  return {sums, view::slice(memory, 0, 0, kCount)};
}

void fill(const Tensor& elements, int rank) {
  for (int64_t i = 0; i < kCount; ++i)
    set(elements, i, value(rank, i));
}

// Which slots a rank wants; no rank wants slot 4.
bool wants(int rank, size_t slot) { return slot != 4 && (slot + static_cast<size_t>(rank)) % 3 != 0; }

std::string check_sums(const dist::ProcessGroupPtr& group, DType dtype) {
  const int rank = group->rank();
  const auto [sums, elements] = bucket_of(*group, dtype);
  const Tensor plain = group->allocate(kCount, dtype);
  fill(plain, rank);
  group->all_reduce(plain, {.op = dist::ReduceOp::Avg})->wait();
  for (int turn = 0; turn < 2; ++turn) {  // the room is reused
    sums->want_none();
    fill(elements, rank);
    for (size_t slot = 0; slot < sums->slots(); ++slot) {
      if (wants(rank + turn, slot)) sums->want(slot);
    }
    group->all_reduce(elements, {.op = dist::ReduceOp::Avg, .slot_sums = sums})->wait();
    if (bits_of({elements}) != bits_of({plain})) return fmt::format("{}: another mean", name(dtype));
    if (sums->taken() != group->takes_sums()) return "taken, or not";
    for (int r = 0; r < group->size(); ++r) {
      for (size_t slot = 0; slot < sums->slots(); ++slot) {
        const bool measured = group->takes_sums() && wants(r + turn, slot);
        const double expected = measured ? expected_sum(r, slot) : 0;
        const double found = sums->sum(r, slot);
        if (std::abs(found - expected) > 1e-6 * expected)
          return fmt::format("{}, rank {}, slot {}: {} instead of {}", name(dtype), r, slot, found, expected);
      }
    }
  }
  return "";
}

std::string check_all_sums(const dist::ProcessGroupPtr& group) {
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    const std::string wrong = check_sums(group, dtype);
    if (!wrong.empty()) return wrong;
  }
  return "";
}
const AddRankCase add_sums("an all_reduce measures the slots of every rank on its way", &check_all_sums,
                           {.threads = {1, 2, 3, 7}, .shm = {1, 2, 3, 7}});

// The squares of the largest numbers exceed the range of their type.
std::string check_non_finite(const dist::ProcessGroupPtr& group) {
  if (!group->takes_sums()) return "";
  const double infinity = std::numeric_limits<double>::infinity();
  const int last = group->size() - 1;
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    const double large = dtype == kFloat64 ? 1e300 : dtype == kFloat16 ? 6e4 : 1e38;
    for (const double odd : {infinity, std::nan(""), large}) {
      const auto [sums, elements] = bucket_of(*group, dtype);
      fill(elements, group->rank());
      for (size_t slot = 0; slot < sums->slots(); ++slot)
        sums->want(slot);
      if (group->rank() == last) set(elements, 8900, odd);
      group->all_reduce(elements, {.op = dist::ReduceOp::Sum, .slot_sums = sums})->wait();
      for (int r = 0; r < group->size(); ++r) {
        for (size_t slot = 0; slot < sums->slots(); ++slot) {
          const bool expected = r != last || slot != 6 || odd == large;
          if (std::isfinite(sums->sum(r, slot)) != expected)
            return fmt::format("{}, {}: rank {}, slot {}", name(dtype), odd, r, slot);
        }
      }
      if (odd == large && sums->sum(last, 6) < 0.9 * std::min(large * large, std::numeric_limits<double>::max()))
        return "size of large numbers";
    }
  }
  return "";
}
const AddRankCase add_non_finite("a sum that is measured on the way is finite where all elements are",
                                 &check_non_finite);

// One rank has no room behind its elements: no rank may write there.
std::string check_one_without(const dist::ProcessGroupPtr& group) {
  const bool without = group->rank() == 0;
  auto [sums, elements] = bucket_of(*group, kFloat32);
  for (size_t slot = 0; slot < sums->slots(); ++slot)
    sums->want(slot);
  const Tensor guarded = group->allocate(sums->numel_with_room(), kFloat32);
  for (int64_t i = 0; i < guarded.numel(); ++i)
    set(guarded, i, 5);
  if (without) elements = view::slice(guarded, 0, 0, kCount);
  fill(elements, group->rank());
  group->all_reduce(elements, {.op = dist::ReduceOp::Sum, .slot_sums = without ? nullptr : sums})->wait();
  if (sums->taken()) return "taken";
  double expected = 0;
  for (int r = 0; r < group->size(); ++r)
    expected += value(r, 100);
  if (elements.data_ptr<float>()[100] != static_cast<float>(expected)) return "the sum of elements";
  for (int64_t i = kCount; i < guarded.numel() && without; ++i) {
    if (guarded.data_ptr<float>()[i] != 5) return fmt::format("written at {}", i);
  }
  return sums->sum(1, 4) == 0 ? "" : "a sum that nobody took";
}
const AddRankCase add_one_without("where one rank does not measure, none does", &check_one_without);

// The sums have room behind other elements, even if taken of those before: no rank may write behind these elements.
std::string check_other_elements(const dist::ProcessGroupPtr& group) {
  const auto [sums, elements] = bucket_of(*group, kFloat32);
  for (size_t slot = 0; slot < sums->slots(); ++slot)
    sums->want(slot);
  fill(elements, group->rank());
  group->all_reduce(elements, {.op = dist::ReduceOp::Sum, .slot_sums = sums})->wait();
  if (sums->taken() != group->takes_sums()) return "taken, or not";
  const Tensor guarded = group->allocate(sums->numel_with_room(), kFloat32);
  for (int64_t i = 0; i < guarded.numel(); ++i)
    set(guarded, i, 5);
  const Tensor other = view::slice(guarded, 0, 0, kCount);
  group->all_reduce(other, {.op = dist::ReduceOp::Sum, .slot_sums = sums})->wait();
  for (int64_t i = kCount; i < guarded.numel(); ++i) {
    if (guarded.data_ptr<float>()[i] != 5) return fmt::format("written at {}", i);
  }
  return sums->taken() ? "taken" : "";
}
const AddRankCase add_other_elements("sums of one bucket are not taken of another", &check_other_elements,
                                     {.threads = {2}, .shm = {2}});

// Memory that the peers do not reach is copied, and has no room.
std::string check_staged(const dist::ProcessGroupPtr& group) {
  const auto sums = std::make_shared<dist::SlotSums>(group->rank(), group->size(), kFloat32, kCount, kEdges);
  const Tensor memory = full({sums->numel_with_room()}, 1, kFloat32);
  sums->place_in(memory);
  const Tensor elements = view::slice(memory, 0, 0, kCount);
  for (size_t slot = 0; slot < sums->slots(); ++slot)
    sums->want(slot);
  group->all_reduce(elements, {.op = dist::ReduceOp::Sum, .slot_sums = sums})->wait();
  if (elements.data_ptr<float>()[77] != static_cast<float>(group->size())) return "the sum of elements";
  return sums->taken() == (std::string(group->backend()) == "threads") ? "" : "taken, or not";
}
const AddRankCase add_staged("elements that are copied first are not measured", &check_staged, {.threads = {2}});

}  // namespace brigade::test::slot_sums_cases
