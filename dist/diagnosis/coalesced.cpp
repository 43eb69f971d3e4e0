// Writes and reads the descriptions of collectives that are issued together.
#include <brigade/dist/diagnosis/coalesced.h>

#include <brigade/core/fnv.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

namespace brigade::dist {

namespace {

constexpr std::string_view kCoalesced = " coalesced: ";
// Groups in shared memory cut a description off after 95 bytes.
constexpr size_t kLongestList = 56;

// The number at the beginning of a text, which it loses.
std::optional<size_t> take_number(std::string_view& text) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// What a description says.
struct Told {
  size_t parts = 0;                     // 0: by itself
  std::vector<std::string_view> sizes;  // of all parts as one, as far as they are listed
};

Told told_by(std::string_view text) {
  if (take(text, "part ")) {
    if (!take_number(text) || !take(text, " of ")) return {};
    return {take_number(text).value_or(0), {}};
  }
  const std::optional<size_t> parts = take_number(text);
  if (!parts || !take(text, kCoalesced)) return {};
  Told told{*parts, {}};
  text = text.substr(0, text.rfind(" ("));
  while (!text.empty()) {
    const size_t comma = text.find(", ");
    const std::string_view size = text.substr(0, comma);
    if (size != "...") told.sizes.push_back(size);
    text = comma == text.npos ? std::string_view() : text.substr(comma + 2);
  }
  return told;
}

std::string together(size_t parts) {
  return parts == 1 ? "one collective in a coalescing manager" : fmt::format("{} collectives together", parts);
}

}  // namespace

std::string part_in_words(size_t part, size_t parts, std::string_view description) {
  return fmt::format("part {} of {}{}{}", part + 1, parts, description.empty() ? "" : ": ", description);
}

CollectiveInfo as_one(std::span<const CollectiveInfo> parts) {
  CollectiveInfo whole = parts.front();
  whole.count = 0;
  const bool one_dtype =
      std::ranges::all_of(parts, [&](const CollectiveInfo& each) { return each.dtype == parts.front().dtype; });
  if (!one_dtype) whole.dtype = "several dtypes";
  uint64_t digest = kFnvStart;
  std::string list;
  bool is_whole = true;
  for (const CollectiveInfo& each : parts) {
    whole.count += each.count;
    if (each.op != whole.op) whole.op = "several";
    if (each.root != whole.root) whole.root = -1;
    digest = fnv(fmt::format("{} {} {} {} {};", each.op, each.dtype, each.count, each.root, each.description), digest);
    if (!is_whole) continue;
    const std::string size = one_dtype ? std::to_string(each.count) : fmt::format("{} x {}", each.count, each.dtype);
    is_whole = list.size() + size.size() <= kLongestList;
    list += (list.empty() ? "" : ", ") + (is_whole ? size : std::string("..."));
  }
  whole.description = fmt::format("{}{}{} ({:08x})", parts.size(), kCoalesced, list, digest & 0xFFFFFFFF);
  return whole;
}

std::optional<std::string> how_parts_differ(const CollectiveInfo& a, std::string_view name_of_a,
                                            const CollectiveInfo& b, std::string_view name_of_b) {
  if (a.description == b.description || a.kind != b.kind) return std::nullopt;
  const Told of_a = told_by(a.description);
  const Told of_b = told_by(b.description);
  if (of_a.parts == 0 && of_b.parts == 0) return std::nullopt;
  if (of_a.parts == 0)
    return fmt::format("{} issues {} here, {} this one by itself", name_of_b, together(of_b.parts), name_of_a);
  if (of_b.parts == 0)
    return fmt::format("{} issues {} here, {} this one by itself", name_of_a, together(of_a.parts), name_of_b);
  if (of_a.parts != of_b.parts)
    return fmt::format("{} issues {} here, {} {}", name_of_a, together(of_a.parts), name_of_b, of_b.parts);
  for (size_t i = 0; i < std::min(of_a.sizes.size(), of_b.sizes.size()); ++i) {
    if (of_a.sizes[i] != of_b.sizes[i])
      return fmt::format("part {} of {} has {} elements on {}, {} on {}", i + 1, of_a.parts, of_a.sizes[i], name_of_a,
                         of_b.sizes[i], name_of_b);
  }
  return fmt::format("the {} parts differ in a size, dtype, operation, root or description", of_a.parts);
}

}  // namespace brigade::dist
