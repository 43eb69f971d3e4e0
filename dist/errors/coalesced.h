// Collectives that are issued together: as one collective that ranks compare, and how those of two ranks differ.
#pragma once

#include <brigade/dist/errors/collective_info.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace brigade::dist {

// All of them as one, of the kind that they share: what they have in common, the number of elements of all, and a digest of
// everything that ranks compare of each part. The sizes of the first eight parts are kept for texts.
CollectiveInfo as_one(std::span<const CollectiveInfo> parts);

// Where two collectives differ, and at least one of them is issued together with others: how, with the names of the two ranks:
// "rank 0 issues 2 collectives together here, rank 1 3".
std::optional<std::string> how_parts_differ(const CollectiveInfo& a, std::string_view name_of_a,
                                            const CollectiveInfo& b, std::string_view name_of_b);

}  // namespace brigade::dist
