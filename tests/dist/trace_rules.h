// Reads a trace as Perfetto's importer does, by the known rules of the Chrome trace format, and reports what the
// importer would drop or draw elsewhere. tests/perfetto asks the importer itself.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace brigade::test {

struct ImportedSlice {
  std::string name;
  int64_t begin = 0;  // nanoseconds
  int64_t end = 0;
  nlohmann::json arguments;
};

struct ImportedTrace {
  // By track: "rank 0, lane 200000", or "rank 0, collective 0x1" for asynchronous events.
  std::map<std::string, std::vector<ImportedSlice>> tracks;
  std::vector<std::string> problems;
};

ImportedTrace import_trace(const nlohmann::json& trace);

}  // namespace brigade::test
