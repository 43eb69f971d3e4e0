// The arithmetic of Store::add, shared by both stores.
#pragma once

#include <cstdint>
#include <string>

namespace brigade::dist {

// The integer in `text` (nullptr: the key is absent, which counts as 0) plus `amount`. Throws DistError that names the
// key and its value when the value, or the sum, is not a 64-bit integer.
int64_t added_to(const std::string& key, const std::string* text, int64_t amount);

}  // namespace brigade::dist
