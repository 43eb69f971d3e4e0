#include <brigade/core/error.h>

#include <optim/lr_scheduler/expected.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace brigade::test {
namespace {

using nlohmann::json;

const std::string kPath = BRIGADE_TEST_DATA "/schedules.json";

std::vector<double> of_two_groups(const json& line, const char* key) {
  auto values = line.at(key).get<std::vector<double>>();
  if (values.size() != 2)
    throw ValueError(kPath + ": expected two groups, but " + line.dump() + " has " + std::to_string(values.size()));
  return values;
}

ExpectedEntries entries_of(const json& object, const std::vector<int64_t>& epochs, bool plateaus) {
  ExpectedEntries entries;
  for (const auto& [name, lines] : object.items()) {
    std::vector<int64_t> found;
    for (const json& line : lines) {
      ExpectedEpoch& at = entries[name].emplace_back();
      at.epoch = line.at("epoch").get<int64_t>();
      found.push_back(at.epoch);
      at.lr = of_two_groups(line, "lr");
      if (plateaus)
        at.best = line.at("best").get<double>();
      else
        at.momentum = of_two_groups(line, "momentum");
    }
    if (found.empty() || found != epochs)
      throw ValueError(kPath + ": the epochs of " + name + " are " + json(found).dump() + ", expected " +
                       json(epochs).dump());
  }
  return entries;
}

}  // namespace

Expected expected() {
  std::ifstream in(kPath);
  if (!in) throw IoError(kPath + ": cannot be read; tests/reference/generate_schedules.py writes it");
  const json file = json::parse(in);
  return {entries_of(file.at("schedules"), file.at("epochs").get<std::vector<int64_t>>(), false),
          entries_of(file.at("plateaus"), file.at("plateau_epochs").get<std::vector<int64_t>>(), true),
          file.at("metrics").get<std::vector<double>>()};
}

}  // namespace brigade::test
