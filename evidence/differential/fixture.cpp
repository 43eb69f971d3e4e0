// Compares results with the stored ones of PyTorch.
#include "differential/fixture.h"

#include <brigade/core/error.h>

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <memory>

namespace brigade::differential {
namespace {

std::string read_gzipped(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), &gzclose);
  if (!file) throw IoError("cannot open " + path);
  std::string text;
  char buffer[1 << 16];
  int count;
  while ((count = gzread(file.get(), buffer, sizeof buffer)) > 0)
    text.append(buffer, static_cast<size_t>(count));
  if (count < 0) throw IoError("cannot read " + path);
  return text;
}

std::map<std::string, Expected> expected_of(const nlohmann::json& object) {
  std::map<std::string, Expected> expected;
  for (const auto& [name, entry] : object.items())
    expected[name] = {Snapshot::from_json(entry), entry.value("bound", 0.0)};
  return expected;
}

// Allows for a few roundings of the element.
double relative_bound(DType dtype) {
  switch (dtype) {
    case DType::Float64: return 1e-12;
    case DType::Float32: return 2e-6;
    case DType::Float16: return 1.0 / 512;
    case DType::BFloat16: return 1.0 / 64;
    default: return 0;
  }
}

bool close(double actual, double expected, double relative, double bound) {
  if (std::isnan(expected) || std::isnan(actual)) return std::isnan(expected) && std::isnan(actual);
  if (actual == expected) return true;
  return std::isfinite(expected) && std::abs(actual - expected) <= relative * std::abs(expected) + bound;
}

bool same(const Snapshot& actual, const Expected& expected) {
  const Snapshot& wanted = expected.snapshot;
  if (actual.dtype != wanted.dtype || !(actual.sizes == wanted.sizes)) return false;
  if (actual.requires_grad != wanted.requires_grad) return false;
  const std::vector<double> a = actual.values(), e = wanted.values();
  for (size_t i = 0; i < a.size(); ++i)
    if (!close(a[i], e[i], relative_bound(wanted.dtype), expected.bound)) return false;
  return true;
}

using Expectations = std::map<std::string, Expected>;
using Snapshots = std::map<std::string, Snapshot>;

// The first name whose value differs; "" if none does. Names missing from `expected` were omitted from the file on
// purpose and are not compared.
std::string first_different(const Expectations& expected, const Snapshots& actual) {
  for (const auto& [name, wanted] : expected) {
    const auto found = actual.find(name);
    if (found == actual.end() || !same(found->second, wanted)) return name;
  }
  return "";
}

std::string beside(const std::string& what, const Expectations& expected, const Snapshots& actual) {
  const auto found = actual.find(what);
  return "expected " + expected.at(what).snapshot.to_text() + ", got " +
         (found == actual.end() ? "nothing" : found->second.to_text());
}

// The actual value in the message of a difference; shrunken() keeps it unchanged while it removes lines.
std::string found_in(const Snapshots& snapshots, const std::string& name) {
  const auto found = snapshots.find(name);
  return found == snapshots.end() ? "nothing" : found->second.to_text();
}

}  // namespace

std::vector<Fixture> read_fixtures(const std::string& path) {
  const std::string text = read_gzipped(path);
  std::vector<Fixture> fixtures;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    try {
      const nlohmann::json object = nlohmann::json::parse(text.substr(begin, end - begin));
      fixtures.push_back({parse_program(object), object.at("refused").get<std::vector<size_t>>(),
                          expected_of(object.at("variables")), expected_of(object.at("gradients"))});
    } catch (const nlohmann::json::exception& error) {
      throw ValueError(path + ", program " + std::to_string(fixtures.size()) + ": " + error.what());
    }
    begin = end + 1;
  }
  return fixtures;
}

std::string difference(const Fixture& fixture, const Result& result) {
  if (!result.malformed.empty()) return result.malformed;
  for (const Refusal& refusal : result.refusals) {
    if (!std::ranges::count(fixture.refused, refusal.line))
      return "line " + std::to_string(refusal.line) + " is refused here and not by PyTorch: " + refusal.message;
  }
  for (const size_t line : fixture.refused) {
    if (std::ranges::none_of(result.refusals, [&](const Refusal& refusal) { return refusal.line == line; }))
      return "line " + std::to_string(line) + " is refused by PyTorch and not here";
  }
  if (const std::string name = first_different(fixture.variables, result.variables); !name.empty())
    return name + ": " + beside(name, fixture.variables, result.variables);
  if (const std::string name = first_different(fixture.gradients, result.gradients); !name.empty())
    return "gradient of " + name + ": " + beside(name, fixture.gradients, result.gradients);
  return "";
}

Program shrunken(const Fixture& fixture, const Result& result) {
  Program program = fixture.program;
  const std::string variable = first_different(fixture.variables, result.variables);
  const std::string gradient = variable.empty() ? first_different(fixture.gradients, result.gradients) : "";
  if (variable.empty() && gradient.empty()) return program;
  const auto asked = [&](const Result& of) {
    return variable.empty() ? found_in(of.gradients, gradient) : found_in(of.variables, variable);
  };
  const std::string before = asked(result);
  for (size_t i = program.lines.size(); i-- > 0;) {
    Program shorter = program;
    shorter.lines.erase(shorter.lines.begin() + static_cast<std::ptrdiff_t>(i));
    if (asked(run(shorter)) == before) program = std::move(shorter);
  }
  return program;
}

}  // namespace brigade::differential
