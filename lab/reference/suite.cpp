// Runs each family against its file of fixtures, then the models, and reports what is missing.
#include <brigade/lab/reference/suite.h>

#include <brigade/core/safetensors.h>
#include <brigade/lab/reference/operation.h>
#include <brigade/lab/reference/training.h>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>
#include <set>

namespace brigade::lab::reference {
namespace {

bool chosen(const SuiteOptions& options, const std::string& family, const std::string& id) {
  return options.only.empty() || family == options.only || id.find(options.only) != std::string::npos;
}

void fail(CaseResult& result, const std::string& why) { result.error = why; }

// Runs a case if its fixture was made from the same row of the table.
CaseResult run_one(const Case& which, const SafetensorsFile& fixtures, const SuiteOptions& options) {
  CaseResult result;
  if (!find_operation(which.op)) {
    fail(result, "the operation '" + which.op + "' is not known; add it to lab/reference/ops");
    return result;
  }
  const auto found = fixtures.metadata().find(which.id());
  if (found == fixtures.metadata().end()) {
    fail(result, fixtures.path() + " has no case of this name; run tests/reference/generate.py");
    return result;
  }
  if (nlohmann::json::parse(found->second, nullptr, false) != *which.description) {
    fail(result,
         fixtures.path() + " was made from another row (" + found->second + "); run tests/reference/generate.py");
    return result;
  }
  return check_case(which,
                    [&](const std::string& name) {
                      const std::string full = which.id() + "/" + name;
                      return fixtures.contains(full) ? fixtures.tensor(full) : Tensor();
                    },
                    {.device = options.device, .seen = options.seen});
}

// Opens a file. Returns null and sets `problem` when it cannot be read.
std::unique_ptr<SafetensorsFile> open(const std::filesystem::path& path, std::string& problem) {
  try {
    return std::make_unique<SafetensorsFile>(path.string());
  } catch (const Error& error) {
    problem = error.what();
    return nullptr;
  }
}

void run_models(const SuiteOptions& options, const std::function<void(const SuiteResult&)>& tell) {
  for (const TrainingCase& which : read_training_table(options.folder)) {
    if (!chosen(options, kModelsFamily, which.id()) || (options.dtype && *options.dtype != which.dtype)) continue;
    SuiteResult done{kModelsFamily, which.id(), which.model, which.dtype, {}};
    std::string problem;
    const auto path = std::filesystem::path(options.folder) / which.fixture();
    const std::unique_ptr<SafetensorsFile> fixture = open(path, problem);
    if (fixture) {
      done.result = check_training(which, *fixture, options.device);
    } else {
      fail(done.result, problem);
    }
    tell(done);
  }
}

}  // namespace

void run_suite(const SuiteOptions& options, const std::function<void(const SuiteResult&)>& tell) {
  for (const Family& family : read_table(options.folder)) {
    const auto path = std::filesystem::path(options.folder) / "fixtures" / (family.name + ".safetensors");
    std::string problem;
    const std::unique_ptr<SafetensorsFile> fixtures = open(path, problem);
    std::set<std::string> known;
    for (const Case& which : family.cases) {
      known.insert(which.id());
      if (!chosen(options, family.name, which.id()) || (options.dtype && *options.dtype != which.dtype)) continue;
      SuiteResult done{family.name, which.id(), which.op, which.dtype, {}};
      if (fixtures) {
        done.result = run_one(which, *fixtures, options);
      } else {
        fail(done.result, problem);
      }
      tell(done);
    }
    if (!fixtures) continue;
    for (const auto& [name, text] : fixtures->metadata()) {
      if (name == "torch" || known.contains(name) || !chosen(options, family.name, name)) continue;
      SuiteResult done{family.name, name, name.substr(0, name.find('/')), DType::Float64, {}};
      fail(done.result, path.string() + " has this case, the table has not; run tests/reference/generate.py");
      tell(done);
    }
  }
  run_models(options, tell);
}

}  // namespace brigade::lab::reference
