// Writes each line in one piece, so that readers rarely see a partial line.
#include <brigade/dist/fabric/logger.h>

#include <brigade/core/error.h>

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace brigade::dist {

void JsonLinesLogger::log_metrics(const std::map<std::string, double>& metrics, int64_t step) {
  nlohmann::json line(metrics);
  if (step >= 0) line["step"] = step;
  std::ofstream file(path_, std::ios::app);
  file << line.dump() + "\n" << std::flush;
  if (!file) throw IoError("cannot write {}: {}", path_, std::strerror(errno));
}

}  // namespace brigade::dist
