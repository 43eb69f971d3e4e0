// Looks in each folder for the plain file, then for the compressed one.
#include <brigade/data/detail/image_files.h>

#include <brigade/core/error.h>

#include <filesystem>

namespace brigade::data::detail {

std::string find_file(const std::string& dataset, const std::vector<std::string>& folders, const std::string& file) {
  std::string looked_in;
  for (const std::string& folder : folders) {
    for (const char* ending : {"", ".gz"}) {
      std::error_code ignored;
      std::string path = (std::filesystem::path(folder) / (file + ending)).string();
      if (std::filesystem::exists(path, ignored)) return path;
    }
    looked_in += (looked_in.empty() ? "" : " and ") + folder;
  }
  throw IoError("{}: found neither {} nor {}.gz in {}; download the data set and name the folder that holds its files",
                dataset, file, file, looked_in);
}

}  // namespace brigade::data::detail
