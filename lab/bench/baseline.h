// The results of an earlier run, to compare with.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>

namespace brigade::lab::bench {

class Baseline {
 public:
  // Reads what --json has written. `measure`: the field of a row, a STAT, that is compared. Throws
  // IoError when the file cannot be read, ValueError when no row in it has the measure.
  Baseline(std::string file, std::string measure);
  ~Baseline();
  Baseline(const Baseline&) = delete;
  Baseline& operator=(const Baseline&) = delete;

  // Of the row whose fields equal all those of `key`; 0 where there is none.
  double median_of(const nlohmann::json& key) const;
  // "baseline FILE: Brigade 0.1.0 (commit), PROCESSOR", and a warning where it is not `processor`.
  std::string origin(const std::string& processor) const;

 private:
  std::string file_, measure_;
  std::unique_ptr<nlohmann::json> all_;
};

}  // namespace brigade::lab::bench
