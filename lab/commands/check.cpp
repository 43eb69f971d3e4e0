// brigade check: compares results and gradients with references.
#include <brigade/core/device_runtime.h>
#include <brigade/lab/commands/commands.h>
#include <brigade/lab/options.h>
#include <brigade/lab/reference/suite.h>
#include <brigade/lab/results.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>

namespace brigade::lab {
namespace {

using nlohmann::json;

// JSON has no infinities and no NaN.
json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

void add_numbers(json& row, const check::Comparison& of) {
  row["tensor"] = of.name;
  row["max_abs"] = number(of.max_abs);
  row["max_rel"] = number(of.max_rel);
  row["cosine"] = number(of.cosine);
  row["bound"] = number(of.bound);
  row["worst_index"] = of.worst_index;
  row["actual"] = number(of.actual);
  row["expected"] = number(of.expected);
}

// The row of a case: its tensor that is closest to the bound.
json row_of(const reference::SuiteResult& done, const std::string& device) {
  json row{{"case", done.id},
           {"op", done.op},
           {"dtype", name(done.dtype)},
           {"device", device},
           {"passed", done.result.passed()},
           {"error", done.result.error}};
  if (const check::Comparison* worst = done.result.worst()) add_numbers(row, *worst);
  return row;
}

// The totals of a family, printed in one line.
struct FamilyTotals {
  int cases = 0, failed = 0;
  std::set<std::string> operations;
  double worst = 0;  // as a fraction of the bound
  std::string where;
};

void tell_failure(std::ostream& out, const reference::SuiteResult& done) {
  out << fmt::format("FAILED {}\n", done.id);
  if (!done.result.error.empty()) out << "  " << done.result.error << "\n";
  check::Report wrong;
  for (const check::Comparison& row : done.result.report.rows)
    if (!row.passed) wrong.rows.push_back(row);
  if (!wrong.rows.empty()) out << wrong.table();
}

struct Arguments {
  bool all = false;
  std::string file, model, op;
  double bound = 0;
  std::string only, device = "cpu", dtype, reference;
  bool verbose = false;
  Results results;
};

std::optional<DType> dtype_option(const Arguments& given) {
  if (given.dtype.empty()) return std::nullopt;
  return dtype_from_name(given.dtype);
}

int check_all(Arguments& given) {
  reference::SuiteOptions options;
  options.folder = given.reference.empty() ? reference::reference_folder() : given.reference;
  options.device = choose_device(given.device);
  options.only = given.only;
  options.dtype = dtype_option(given);
  std::map<std::string, FamilyTotals> families;
  std::vector<std::string> order;
  reference::run_suite(options, [&](const reference::SuiteResult& done) {
    auto [found, added] = families.try_emplace(done.family);
    if (added) order.push_back(done.family);
    FamilyTotals& totals = found->second;
    ++totals.cases;
    totals.operations.insert(done.op);
    if (!done.result.passed()) {
      ++totals.failed;
      tell_failure(std::cout, done);
    } else if (given.verbose) {
      std::cout << done.id << "\n" << done.result.report.table();
    }
    if (const check::Comparison* worst = done.result.worst();
        worst && reference::part_of_bound(*worst) >= totals.worst) {
      totals.worst = reference::part_of_bound(*worst);
      totals.where = done.id + " " + worst->name;
    }
    given.results.add(row_of(done, to_string(options.device)));
  });
  if (order.empty()) throw ValueError("check: no case is in '{}' {}", given.only, given.dtype);
  int cases = 0, failed = 0;
  std::set<std::string> operations, models;
  for (const std::string& family : order) {
    const FamilyTotals& totals = families[family];
    std::cout << fmt::format("{:<14} {:>4} cases  {:>3} ops  {:>4} failed   closest to its bound ({:.3g} %): {}\n",
                             family, totals.cases, totals.operations.size(), totals.failed, 100 * totals.worst,
                             totals.where);
    cases += totals.cases;
    failed += totals.failed;
    (family == reference::kModelsFamily ? models : operations)
        .insert(totals.operations.begin(), totals.operations.end());
  }
  std::cout << fmt::format("{} cases over {} ops and {} models passed, {} failed, 0 skipped\n", cases - failed,
                           operations.size(), models.size(), failed);
  given.results.write();
  return failed == 0 ? 0 : 1;
}

int check_file(Arguments& given) {
  reference::FileOptions options{.model = given.model, .op = given.op, .bound = given.bound};
  options.device = choose_device(given.device);
  options.dtype = dtype_option(given);
  const reference::FileResult found = reference::check_file(given.file, options);
  for (const check::Comparison& tensor : found.report.rows) {
    json row{{"case", given.file},         {found.kind, found.name},
             {"dtype", name(found.dtype)}, {"device", to_string(options.device)},
             {"passed", tensor.passed},    {"error", tensor.problem}};
    add_numbers(row, tensor);
    given.results.add(std::move(row));
  }
  const auto failed = std::count_if(found.report.rows.begin(), found.report.rows.end(),
                                    [](const check::Comparison& row) { return !row.passed; });
  std::cout << fmt::format("{} {} in {} on {}\n", found.kind, found.name, name(found.dtype), to_string(options.device))
            << found.report.table()
            << fmt::format("{} of {} tensors agree\n", found.report.rows.size() - static_cast<size_t>(failed),
                           found.report.rows.size());
  if (found.report.rows.empty()) throw ValueError("check: {} holds nothing to compare with", given.file);
  given.results.write();
  return failed == 0 ? 0 : 1;
}

}  // namespace

void add_check(Command& app) {
  auto given = std::make_shared<Arguments>();
  Command command = app.add_command("check", "Compare results and gradients with references");
  command.footer(
      "Examples:\n  brigade check --all\n  brigade check --all --only gelu --dtype float32 --verbose\n  brigade check "
      "step.safetensors --model gpt\n  brigade check conv.safetensors --op conv2d --json -\nHow such a file is laid "
      "out, and written from PyTorch: docs/check.md.");
  command.add_option("file", given->file, "a safetensors file with inputs, parameters and expected values");
  command.add_flag("--all", given->all, "all operations and models against what PyTorch gave");
  command.add_option("--model", given->model, "with a file: the built-in model (default: the file's metadata say it)");
  command.add_option("--op", given->op, "with a file: the operation (default: the file's metadata say it)");
  command
      .add_option("--bound", given->bound,
                  "with a file: how far an element may be off, as a part of its tensor's scale")
      .check(positive_number());
  command.add_option("--only", given->only, "with --all: a family, or part of a case's name");
  command.add_option("--device", given->device, "cpu, cuda, cuda:N or auto").show_default();
  command.add_option("--dtype", given->dtype, "with --all: only cases in this dtype; with a file: computes in it")
      .check(dtype_name());
  command.add_option("--reference", given->reference,
                     "with --all: folder of cases and fixtures (default: the one it came with)");
  command.add_flag("--verbose", given->verbose, "with --all: the tables of cases that pass, too");
  given->results.add_json_option(command);
  command.action([given] {
    if (given->all == !given->file.empty()) throw ValueError("check: give either --all or a file");
    if (!given->model.empty() && !given->op.empty()) throw ValueError("check: give either --model or --op");
    if (given->all && !(given->model.empty() && given->op.empty()))
      throw ValueError("check: --model and --op are for a file; --only chooses among all cases");
    given->results.begin();
    return given->all ? check_all(*given) : check_file(*given);
  });
}

}  // namespace brigade::lab
