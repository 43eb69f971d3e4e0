// The results of an earlier run, to compare with.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>

namespace brigade::lab::bench {

class Baseline {
 public:
  // Reads a file written by --json. `measure` names the field of a row (a STAT) to compare. Throws IoError when the
  // file cannot be read, ValueError when no row in it has the measure.
  Baseline(std::string file, std::string measure);
  ~Baseline();
  Baseline(const Baseline&) = delete;
  Baseline& operator=(const Baseline&) = delete;

  // The median of the row whose fields match all fields of `key`; 0 when no row matches.
  double median_of(const nlohmann::json& key) const;
  // "baseline FILE: Brigade 0.1.0 (commit), PROCESSOR", plus a warning when that processor is not `processor`.
  std::string origin(const std::string& processor) const;

 private:
  std::string file_, measure_;
  std::unique_ptr<nlohmann::json> all_;
};

}  // namespace brigade::lab::bench
