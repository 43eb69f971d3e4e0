// Looks for a file in the folders that may hold it.
#include <brigade/lab/data_path.h>

#include <brigade/core/error.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace brigade::lab {

std::string data_path(const std::string& file, const std::string& about) {
  namespace fs = std::filesystem;
  std::vector<fs::path> places;
  if (const char* chosen = std::getenv("BRIGADE_DATA_DIR")) {
    places.emplace_back(fs::path(chosen) / file);
  } else {
#ifdef BRIGADE_DATA_DIR
    places.emplace_back(fs::path(BRIGADE_DATA_DIR) / file);
#endif
    std::error_code ignored;
    const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
    places.emplace_back(program.parent_path().parent_path() / "share/brigade/data" / file);
  }
  std::string tried;
  for (const fs::path& place : places) {
    if (fs::exists(place)) return place.string();
    tried += (tried.empty() ? "" : ", ") + place.string();
  }
  throw IoError("cannot find the {}; looked for {}. Set BRIGADE_DATA_DIR to the folder that holds {}", about, tried,
                file);
}

}  // namespace brigade::lab
