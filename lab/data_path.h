// Finds the program's data files, and the sources that it shows.
#pragma once

#include <string>

namespace brigade::lab {

// The path of a file of lab/data: in $BRIGADE_DATA_DIR, in the source tree the program was built from, or in
// ../share/brigade/data relative to the program. Throws IoError that names the searched paths and what is missing
// ("digits data").
std::string data_path(const std::string& file, const std::string& about);

// The path of a source file, given its path from the root ("lab/faults/unused/no_grad.cpp"): in the source tree the
// program was built from, or in ../share/brigade relative to the program, where the planted faults are installed.
// Throws IoError that names the searched paths.
std::string source_path(const std::string& file);

}  // namespace brigade::lab
