// NamedOnly: the first member of options structs whose members must be named.
//
// `{.stride = 2}` makes such options; `{2, 1}` does not compile, since in LibTorch braces without
// names are an argument of their own: a stride of 2 by 1.
#pragma once

namespace brigade {

struct NamedOnly {
  constexpr explicit NamedOnly() noexcept = default;
};

}  // namespace brigade
