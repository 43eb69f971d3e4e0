// Checks of option values that several commands share. What they refuse is wrong usage: exit status
// 2.
#pragma once

#include <brigade/lab/command_line.h>

#include <limits>
#include <string>
#include <vector>

namespace brigade::lab {

// A number from `least` to `most`.
ValueCheck number_from(double least, double most = std::numeric_limits<double>::infinity());
// More than 0, and finite.
ValueCheck positive_number();
// One of these words.
ValueCheck one_of(const std::vector<std::string>& words);
// A dtype by its name.
ValueCheck dtype_name();
// A regular expression, as std::regex takes it.
ValueCheck regular_expression();

}  // namespace brigade::lab
