// The table of cases: tests/reference/cases/<family>.json, which the fixture generator also reads
// (tests/reference/README.md).
#pragma once

#include <brigade/core/dtype.h>

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace brigade::lab::reference {

// The memory layout of an input.
enum class Layout : uint8_t { Contiguous, Transposed, Sliced, Expanded };

// One row of the table in one dtype.
struct Case {
  std::string family, op, name;
  DType dtype = DType::Float64;
  std::vector<Layout> layouts;  // one per input
  double bound = 1;             // the row's factor on the default bound
  // If set, the case runs inside an autocast region with `dtype`, on the CPU, since the lists differ by device.
  // Results are held to the precision of this dtype.
  std::optional<DType> autocast;
  // The row with its dtype, as the fixture must repeat it: {"op", "dtype", "name", "inputs",
  // "args", ...}.
  std::shared_ptr<const nlohmann::json> description;

  // "gelu/large/float32": the prefix of its tensors in the fixture
  std::string id() const { return op + "/" + name + "/" + brigade::name(dtype); }
};

struct Family {
  std::string name;
  std::vector<Case> cases;
};

// The folder of the table and fixtures: $BRIGADE_REFERENCE_DIR, the source tree the program was built from, or
// ../share/brigade/reference relative to the program. Throws IoError that lists the searched paths.
std::string reference_folder();
// The families, sorted by name. Throws IoError for a folder without cases, and ValueError that names the file and
// the row for an invalid row.
std::vector<Family> read_table(const std::string& folder);
// Parses the description of one case (Case::description). Throws ValueError.
Case parse_case(const nlohmann::json& description);

}  // namespace brigade::lab::reference
