// Quotes text from a file for use in a message.
#pragma once

#include <string>
#include <string_view>

namespace brigade::detail {

// "weight": in quotes, bytes outside printable ASCII as \xNN, long text cut in its middle.
std::string in_quotes(std::string_view text);

}  // namespace brigade::detail
