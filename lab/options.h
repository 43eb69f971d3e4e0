// Checks of option values that several commands share. CLI11 refuses what they refuse: wrong usage, exit status 2.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class Validator;
}

namespace brigade::lab {

// A number from `least` to `most`. (CLI::Range lets NaN through.)
CLI::Validator number_from(double least, double most);
// More than 0, and finite.
CLI::Validator positive_number();
// One of these words.
CLI::Validator one_of(const std::vector<std::string>& words);
// A dtype by its name.
CLI::Validator dtype_name();
// A regular expression, as std::regex takes it.
CLI::Validator regular_expression();

}  // namespace brigade::lab
