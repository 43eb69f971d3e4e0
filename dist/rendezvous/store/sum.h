// What `add` does to the text of a key: both stores count by the same rule.
#pragma once

#include <cstdint>
#include <string>

namespace brigade::dist {

// The whole number that `text` is (nullptr: the key is not there, which counts as 0) plus `amount`.
// Throws DistError that names the key and its value when the value is no whole number of 64 bits,
// or the sum would be none.
int64_t added_to(const std::string& key, const std::string* text, int64_t amount);

}  // namespace brigade::dist
