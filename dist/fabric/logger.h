// Loggers: destinations for training metrics.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace brigade::dist {

class Logger {
 public:
  virtual ~Logger() = default;
  // `step`: -1 if none was given. Called on rank 0 only.
  virtual void log_metrics(const std::map<std::string, double>& metrics, int64_t step) = 0;
};

// Writes one line of JSON per call: {"loss": 0.5, "step": 3}. Non-finite numbers become null.
class JsonLinesLogger : public Logger {
 public:
  // Appends to the file, which the first line creates.
  explicit JsonLinesLogger(std::string path) : path_(std::move(path)) {}
  // Throws IoError when the file cannot be written.
  void log_metrics(const std::map<std::string, double>& metrics, int64_t step) override;

 private:
  std::string path_;
};

}  // namespace brigade::dist
