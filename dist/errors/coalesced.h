// Coalesced collectives: combined into one for comparison between ranks, and how those of two ranks differ.
#pragma once

#include <brigade/dist/errors/collective_info.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace brigade::dist {

// Combines the parts into one collective of the kind that they share: their common fields, the total number of
// elements, and a digest of everything that ranks compare of each part. Keeps the sizes of the first eight parts for
// texts.
CollectiveInfo as_one(std::span<const CollectiveInfo> parts);

// Describes how two collectives of one kind differ, if at least one of them is coalesced, with the names of the two
// ranks: "rank 0 issues 2 collectives together here, rank 1 3".
std::optional<std::string> how_parts_differ(const CollectiveInfo& a, std::string_view name_of_a,
                                            const CollectiveInfo& b, std::string_view name_of_b);

}  // namespace brigade::dist
