// Looks for a file of a data set, packed or not, in the folders where it may lie.
#pragma once

#include <string>
#include <vector>

namespace brigade::data::detail {

// The first that there is of folder/file and folder/file.gz. Throws IoError that lists where it
// looked.
std::string find_file(const std::string& dataset, const std::vector<std::string>& folders, const std::string& file);

}  // namespace brigade::data::detail
