// Where the program finds its data files, and sources that it shows.
#pragma once

#include <string>

namespace brigade::lab {

// The path of a file of lab/data: in $BRIGADE_DATA_DIR, in the source tree the program was built
// from, or in ../share/brigade/data beside it. Throws IoError that names the places, and says what
// is missing ("digits data").
std::string data_path(const std::string& file, const std::string& about);

// The path of a source file by its path from the root ("lab/faults/unused/no_grad_in_forward.cpp"): in
// the source tree the program was built from, or in ../share/brigade beside it, where the planted
// faults are installed. Throws IoError that names the places.
std::string source_path(const std::string& file);

}  // namespace brigade::lab
