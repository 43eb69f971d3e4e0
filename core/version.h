// The version of Brigade.
#pragma once

#include <string_view>

namespace brigade {

// "0.1.0"
std::string_view version() noexcept;
// Abbreviated commit the build tree was configured at, "unknown" outside a git checkout.
std::string_view commit() noexcept;

}  // namespace brigade
