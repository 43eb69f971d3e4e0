// Looks for a file in the folders that may hold it.
#include <brigade/lab/data_path.h>

#include <brigade/core/error.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace brigade::lab {
namespace {

namespace fs = std::filesystem;

// ../share/brigade
fs::path installed() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path() / "share/brigade";
}

// Returns the first place that exists.
std::string first_of(const std::vector<fs::path>& places, const std::string& about, const std::string& advice) {
  std::string tried;
  for (const fs::path& place : places) {
    if (fs::exists(place)) return place.string();
    tried += (tried.empty() ? "" : ", ") + place.string();
  }
  throw IoError("cannot find the {}; looked for {}.{}", about, tried, advice);
}

}  // namespace

std::string data_path(const std::string& file, const std::string& about) {
  std::vector<fs::path> places;
  if (const char* chosen = std::getenv("BRIGADE_DATA_DIR")) {
    places.emplace_back(fs::path(chosen) / file);
  } else {
#ifdef BRIGADE_DATA_DIR
    places.emplace_back(fs::path(BRIGADE_DATA_DIR) / file);
#endif
    places.emplace_back(installed() / "data" / file);
  }
  return first_of(places, about, " Set BRIGADE_DATA_DIR to the folder that holds " + file);
}

std::string source_path(const std::string& file) {
  std::vector<fs::path> places;
#ifdef BRIGADE_DATA_DIR
  places.emplace_back(fs::path(BRIGADE_DATA_DIR).parent_path().parent_path() / file);
#endif
  places.emplace_back(installed() / file);
  return first_of(places, "source of " + file, "");
}

}  // namespace brigade::lab
