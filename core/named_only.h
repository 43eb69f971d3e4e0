// NamedOnly: the first member of options that have to be written by name.
//
// `{.stride = 2}` makes such options; `{2, 1}` does not compile, since braces without names stand
// for an argument of their own in LibTorch: a stride of 2 by 1 there.
#pragma once

namespace brigade {

struct NamedOnly {
  constexpr explicit NamedOnly() noexcept = default;
};

}  // namespace brigade
