// Reads the rows into cases, one for each dtype, and finds the folder of the tables.
#include <brigade/lab/reference/table.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace brigade::lab::reference {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// "normal [2,3] fixed transposed": the words after the sizes give the layout.
Layout layout_of(const std::string& input) {
  const size_t end = input.find(']');
  std::istringstream words(end == std::string::npos ? "" : input.substr(end + 1));
  Layout layout = Layout::Contiguous;
  for (std::string word; words >> word;) {
    if (word == "transposed") layout = Layout::Transposed;
    if (word == "sliced") layout = Layout::Sliced;
    if (word == "expanded") layout = Layout::Expanded;
  }
  return layout;
}

std::vector<std::string> dtypes_of(const json& row) {
  if (!row.contains("dtypes"))
    return row.contains("autocast") ? std::vector<std::string>{"float16", "bfloat16"}
                                    : std::vector<std::string>{"float64", "float32"};
  const json& dtypes = row.at("dtypes");
  if (dtypes == "all") return {"float64", "float32", "float16", "bfloat16"};
  return dtypes.get<std::vector<std::string>>();
}

Family read_family(const fs::path& path) {
  Family family{path.stem().string(), {}};
  std::set<std::string> seen;
  std::string where = path.filename().string();
  try {
    std::ifstream in(path);
    for (const json& group : json::parse(in)) {
      for (const json& op : group.at("ops")) {
        for (const json& row : group.at("rows")) {
          where =
              path.filename().string() + ": " + op.get<std::string>() + ", row " + row.value("name", "without name");
          for (const std::string& dtype : dtypes_of(row)) {
            json description = row;
            description.erase("dtypes");
            description["op"] = op;
            description["dtype"] = dtype;
            family.cases.push_back(parse_case(description));
            family.cases.back().family = family.name;
            if (!seen.insert(family.cases.back().id()).second) throw ValueError("stands there twice");
          }
        }
      }
    }
  } catch (const json::exception& error) {
    throw ValueError("{}: {}", where, error.what());
  } catch (const Error& error) {
    throw ValueError("{}: {}", where, error.what());
  }
  return family;
}

}  // namespace

Case parse_case(const json& description) {
  Case parsed;
  parsed.op = description.at("op");
  parsed.name = description.value("name", "");
  parsed.dtype = dtype_from_name(description.at("dtype"));
  for (const json& input : description.at("inputs"))
    parsed.layouts.push_back(layout_of(input.get<std::string>()));
  parsed.bound = description.value("bound", 1.0);
  if (parsed.bound != 1 && description.value("reason", "").empty())
    throw ValueError("a row that widens its bound needs a \"reason\"");
  if (description.contains("autocast")) {
    const std::string precision = description.at("autocast");
    parsed.autocast = precision == "lower" ? parsed.dtype : dtype_from_name(precision);
  }
  parsed.description = std::make_shared<json>(description);
  return parsed;
}

std::string reference_folder() {
  std::vector<fs::path> places;
  if (const char* chosen = std::getenv("BRIGADE_REFERENCE_DIR")) {
    places.emplace_back(chosen);
  } else {
#ifdef BRIGADE_REFERENCE_DIR
    places.emplace_back(BRIGADE_REFERENCE_DIR);
#endif
    std::error_code ignored;
    const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
    places.emplace_back(program.parent_path().parent_path() / "share/brigade/reference");
  }
  std::string tried;
  for (const fs::path& place : places) {
    if (fs::is_directory(place / "cases")) return place.string();
    tried += (tried.empty() ? "" : ", ") + place.string();
  }
  throw IoError(
      "cannot find the reference cases; looked for {}. Set BRIGADE_REFERENCE_DIR to the "
      "folder that holds cases and fixtures",
      tried);
}

std::vector<Family> read_table(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(fs::path(folder) / "cases", missing))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  if (files.empty()) throw IoError("there are no cases (*.json) in {}/cases", folder);
  std::sort(files.begin(), files.end());
  std::vector<Family> table;
  for (const fs::path& path : files)
    table.push_back(read_family(path));
  return table;
}

}  // namespace brigade::lab::reference
