#include <brigade/lab/reference/suite.h>

#include <brigade/core/safetensors.h>

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

// A fixture that says of itself what the table says.
CaseResult run_one(const Case& which, const SafetensorsFile& fixtures, Device device) {
  CaseResult result;
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
  return check_case(
      which,
      [&](const std::string& name) {
        const std::string full = which.id() + "/" + name;
        return fixtures.contains(full) ? fixtures.tensor(full) : Tensor();
      },
      device);
}

}  // namespace

void run_suite(const SuiteOptions& options, const std::function<void(const SuiteResult&)>& tell) {
  for (const Family& family : read_table(options.folder)) {
    const std::string path =
        (std::filesystem::path(options.folder) / "fixtures" / (family.name + ".safetensors")).string();
    std::unique_ptr<SafetensorsFile> fixtures;
    std::string problem;
    try {
      fixtures = std::make_unique<SafetensorsFile>(path);
    } catch (const Error& error) {
      problem = error.what();
    }
    std::set<std::string> known;
    for (const Case& which : family.cases) {
      known.insert(which.id());
      if (!chosen(options, family.name, which.id()) || (options.dtype && *options.dtype != which.dtype)) continue;
      SuiteResult done{family.name, which.id(), which.op, which.dtype, {}};
      if (fixtures) {
        done.result = run_one(which, *fixtures, options.device);
      } else {
        fail(done.result, problem);
      }
      tell(done);
    }
    if (!fixtures) continue;
    for (const auto& [name, text] : fixtures->metadata()) {
      if (name == "torch" || known.contains(name) || !chosen(options, family.name, name)) continue;
      SuiteResult done{family.name, name, name.substr(0, name.find('/')), DType::Float64, {}};
      fail(done.result, path + " has this case, the table has not; run tests/reference/generate.py");
      tell(done);
    }
  }
}

}  // namespace brigade::lab::reference
