// Where the program finds its data files.
#pragma once

#include <string>

namespace brigade::lab {

// The path of a file of lab/data: in $BRIGADE_DATA_DIR, in the source tree the program was built
// from, or in ../share/brigade/data beside it. Throws IoError that names the places, and says what
// is missing ("digits data").
std::string data_path(const std::string& file, const std::string& about);

}  // namespace brigade::lab
