// The table of cases: tests/reference/cases/<family>.json, which the generator of the fixtures
// reads as well (tests/reference/README.md).
#pragma once

#include <brigade/core/dtype.h>

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace brigade::lab::reference {

// How an input lies in memory.
enum class Layout : uint8_t { Contiguous, Transposed, Sliced, Expanded };

// One row of the table in one dtype.
struct Case {
  std::string family, op, name;
  DType dtype = DType::Float64;
  std::vector<Layout> layouts;  // one per input
  double bound = 1;             // what the row widens the bound by
  // Runs inside of an autocast region with `dtype`, on the CPU: the lists differ by device. Results
  // are held to the precision of this dtype.
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

// Where table and fixtures are: $BRIGADE_REFERENCE_DIR, the source tree it was built from, or
// ../share/brigade/reference beside the program. Throws IoError that lists where it looked.
std::string reference_folder();
// By name. Throws IoError for a folder without cases, and ValueError that names the file and the
// row for one that is not as it should be.
std::vector<Family> read_table(const std::string& folder);
// What a file with one case says of itself, as above. Throws ValueError.
Case parse_case(const nlohmann::json& description);

}  // namespace brigade::lab::reference
