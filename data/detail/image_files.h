// Looks for a file of a data set, plain or compressed, in its possible folders.
#pragma once

#include <string>
#include <vector>

namespace brigade::data::detail {

// The first existing one of folder/file and folder/file.gz. Throws an IoError that lists the paths it tried.
std::string find_file(const std::string& dataset, const std::vector<std::string>& folders, const std::string& file);

}  // namespace brigade::data::detail
