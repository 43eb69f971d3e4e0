// Combines several collectives into one, and describes how two such collectives differ.
#include <brigade/dist/errors/collective_info.h>

#include <brigade/core/fnv.h>

#include <fmt/format.h>

#include <algorithm>

namespace brigade::dist {
namespace {

constexpr size_t kMostSizes = 8;

std::string together(uint32_t parts) {
  return parts == 1 ? "one collective in a coalescing manager" : fmt::format("{} collectives together", parts);
}

}  // namespace

CollectiveInfo as_one(std::span<const CollectiveInfo> parts) {
  CollectiveInfo whole;
  const CollectiveInfo& first = parts.front();
  whole.kind = first.kind;
  whole.op = first.op;
  whole.dtype = first.dtype;
  whole.root = first.root;
  whole.iteration = first.iteration;
  whole.where = first.where;
  whole.parts = static_cast<uint32_t>(parts.size());
  whole.parts_digest = kFnvStart;
  for (const CollectiveInfo& each : parts) {
    whole.count += each.count;
    whole.mixed_op = whole.mixed_op || each.op != first.op;
    whole.mixed_dtype = whole.mixed_dtype || each.dtype != first.dtype;
    if (each.root != first.root) whole.root = -1;
    CollectiveId id = each.id();
    id.sequence = 0;
    whole.parts_digest = fnv_step(whole.parts_digest, id.digest());
    if (whole.sizes.size() < kMostSizes) whole.sizes.push_back({each.count, each.dtype.value_or(DType::Float32)});
  }
  return whole;
}

std::optional<std::string> how_parts_differ(const CollectiveInfo& a, std::string_view name_of_a,
                                            const CollectiveInfo& b, std::string_view name_of_b) {
  if (a.kind != b.kind || (a.parts == 0 && b.parts == 0) || a.matches(b)) return std::nullopt;
  if (a.parts == 0)
    return fmt::format("{} issues {} here, {} this one by itself", name_of_b, together(b.parts), name_of_a);
  if (b.parts == 0)
    return fmt::format("{} issues {} here, {} this one by itself", name_of_a, together(a.parts), name_of_b);
  if (a.parts != b.parts)
    return fmt::format("{} issues {} here, {} {}", name_of_a, together(a.parts), name_of_b, b.parts);
  // The same part of the same call, posted by itself, with different values.
  if (a.part > 0 && a.part == b.part && a.topic == b.topic && a.id().text == b.id().text) return std::nullopt;
  const auto size = [&](const CollectiveInfo::Part& part) {
    return a.mixed_dtype || b.mixed_dtype ? fmt::format("{} x {}", part.count, name(part.dtype))
                                          : std::to_string(part.count);
  };
  for (size_t i = 0; i < std::min(a.sizes.size(), b.sizes.size()); ++i) {
    if (size(a.sizes[i]) != size(b.sizes[i]))
      return fmt::format("part {} of {} has {} elements on {}, {} on {}", i + 1, a.parts, size(a.sizes[i]), name_of_a,
                         size(b.sizes[i]), name_of_b);
  }
  return fmt::format("the {} parts differ in a size, dtype, operation, root or description", a.parts);
}

}  // namespace brigade::dist
