// brigade diagnose: planted faults and the verdicts on them.
#include <brigade/lab/commands/diagnose.h>

#include <brigade/core/random.h>
#include <brigade/lab/commands/commands.h>
#include <brigade/lab/json_output.h>
#include <brigade/lab/rank_job.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iostream>
#include <memory>
#include <set>

namespace brigade::lab {

namespace {

using nlohmann::json;

json to_json(const dist::Verdict& verdict) {
  json parameters = json::array();
  for (const auto& parameter : verdict.parameters) {
    parameters.push_back({{"name", parameter.name},
                          {"bytes", parameter.bytes},
                          {"ready_ranks", parameter.ready_ranks},
                          {"missing_ranks", parameter.missing_ranks}});
  }
  const json line = verdict.cause.line ? json(verdict.cause.line) : json(nullptr);
  return {{"kind", verdict.kind},
          {"message", verdict.message},
          {"parameters", parameters},
          {"ranks", verdict.ranks},
          {"advice", verdict.advice},
          {"cause",
           {{"kind", dist::name(verdict.cause.kind)},
            {"op", verdict.cause.op},
            {"file", verdict.cause.file},
            {"line", line},
            {"module", verdict.cause.module}}}};
}

dist::Verdict from_json(const json& value) {
  dist::Verdict verdict;
  verdict.kind = value.at("kind");
  verdict.message = value.at("message");
  verdict.ranks = value.at("ranks").get<std::vector<int>>();
  verdict.advice = value.at("advice");
  for (const json& parameter : value.at("parameters")) {
    verdict.parameters.push_back({parameter.at("name"), parameter.at("bytes"),
                                  parameter.at("ready_ranks").get<std::vector<int>>(),
                                  parameter.at("missing_ranks").get<std::vector<int>>()});
  }
  const json& cause = value.at("cause");
  verdict.cause.op = cause.at("op");
  verdict.cause.file = cause.at("file");
  verdict.cause.line = cause.at("line").is_null() ? 0 : cause.at("line").get<uint32_t>();
  verdict.cause.module = cause.at("module");
  const std::string kind = cause.at("kind");
  for (int i = 0; i <= static_cast<int>(dist::CauseKind::Unknown); ++i) {
    if (kind == dist::name(static_cast<dist::CauseKind>(i))) verdict.cause.kind = static_cast<dist::CauseKind>(i);
  }
  return verdict;
}

// On one rank: runs the steps and reports what was raised, or whether the parameters are equal over ranks.
std::string fault_job(const dist::ProcessGroupPtr& group, const std::string& arguments) {
  const json given = json::parse(arguments);
  const Fault& fault = find_fault(given.at("id"));
  FaultContext context;
  context.group = group;
  context.fixed = given.at("fixed");
  context.options.find_unused_parameters = context.fixed;
  context.options.bucket_cap_mb = context.options.first_bucket_mb = given.at("bucket_mb");
  manual_seed(7);
  json result{{"raised", false}, {"text", ""}, {"verdicts", json::array()}, {"equal", true}};
  try {
    const std::vector<Tensor> parameters = fault.run(context);
    for (const Tensor& parameter : parameters) {
      const Tensor theirs = parameter.detach().clone();
      group->broadcast(theirs, {.root = 0, .description = "parameters of rank 0, to compare"})->wait();
      if (std::memcmp(theirs.raw_data(), parameter.raw_data(), parameter.nbytes()) != 0) result["equal"] = false;
    }
  } catch (const dist::ReductionError& error) {
    result["raised"] = true;
    result["text"] = error.what();
    for (const dist::Verdict& verdict : error.verdicts())
      result["verdicts"].push_back(to_json(verdict));
  }
  return result.dump();
}

const AddRankJob add_fault_job("fault", &fault_job);

std::vector<json> run_fault(const Fault& fault, const DiagnoseOptions& options, int ranks, bool fixed) {
  const json arguments{{"id", fault.id}, {"fixed", fixed}, {"bucket_mb", options.bucket_mb}};
  const RankJobOutcome outcome = run_rank_job("fault", arguments.dump(), options.backend, ranks);
  std::vector<json> results;
  for (size_t rank = 0; rank < outcome.ranks.size(); ++rank) {
    const RankResult& result = outcome.ranks[rank];
    if (!result.ok)
      throw DistError(fmt::format("{}: rank {} ended with {}: {}", fault.id, rank, result.error, result.text));
    results.push_back(json::parse(result.text));
  }
  return results;
}

// "" when the verdicts are as expected.
std::string compare(const Fault& fault, const Diagnosis& found, int ranks) {
  const Expectation& expected = fault.expected;
  if (found.detected != expected.detected)
    return expected.detected ? "nothing was reported" : "a control was reported: " + found.text;
  if (!expected.detected) return "";
  std::vector<int> expected_ranks = expected.ranks;
  for (int r = 0; expected.ranks.empty() && r < ranks; ++r)
    expected_ranks.push_back(r);
  std::set<std::string> named;
  for (const dist::Verdict& verdict : found.verdicts) {
    if (verdict.kind != expected.kind) return fmt::format("kind is {}, expected {}", verdict.kind, expected.kind);
    if (!expected.cause.empty() && dist::name(verdict.cause.kind) != expected.cause)
      return fmt::format("cause is {}, expected {}", dist::name(verdict.cause.kind), expected.cause);
    if (expected.module != "*" && verdict.cause.module != expected.module)
      return fmt::format("the cause names module '{}', expected '{}'", verdict.cause.module, expected.module);
    if (expected.file_and_line && (verdict.cause.line == 0 || verdict.cause.file != fault.file))
      return fmt::format("the cause names {}:{}, expected a line of {}", verdict.cause.file, verdict.cause.line,
                         fault.file);
    if (verdict.advice.empty()) return "there is no advice";
    for (const auto& parameter : verdict.parameters) {
      named.insert(parameter.name);
      if (parameter.missing_ranks != expected_ranks)
        return fmt::format("{} is missing on ranks {}, expected {}", parameter.name,
                           dist::list_of(parameter.missing_ranks), dist::list_of(expected_ranks));
    }
  }
  if (named != std::set<std::string>(expected.parameters.begin(), expected.parameters.end()))
    return fmt::format("it names the parameters {}", fmt::join(named, ", "));
  return "";
}

}  // namespace

Diagnosis diagnose(const Fault& fault, const DiagnoseOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const int ranks = options.ranks > 0 ? options.ranks : fault.ranks;
  Diagnosis found;
  const std::vector<json> results = run_fault(fault, options, ranks, false);
  found.detected = results[0].at("raised");
  found.text = results[0].at("text");
  for (const json& verdict : results[0].at("verdicts"))
    found.verdicts.push_back(from_json(verdict));
  found.why_not = compare(fault, found, ranks);
  for (size_t rank = 0; rank < results.size() && found.why_not.empty(); ++rank) {
    if (results[rank].at("text") != results[0].at("text"))
      found.why_not = fmt::format("rank {} raised another text than rank 0", rank);
    if (!found.detected && !results[rank].at("equal"))
      found.why_not = fmt::format("parameters of rank {} differ from rank 0", rank);
  }
  if (found.detected && found.why_not.empty()) {
    for (const json& result : run_fault(fault, options, ranks, true)) {
      if (result.at("raised"))
        found.why_not = "the advised fix is reported as well: " + result.at("text").get<std::string>();
      if (!result.at("equal")) found.why_not = "with the advised fix the parameters differ between ranks";
    }
  }
  found.passed = found.why_not.empty();
  found.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return found;
}

void add_diagnose(CLI::App& app, int& exit_code) {
  struct Arguments {
    std::vector<std::string> ids;
    bool list = false;
    bool all = false;
    DiagnoseOptions options;
    std::string json_file;
  };
  auto given = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("diagnose", "Run planted faults and print the verdicts");
  command->footer(
      "Examples:\n  brigade diagnose --list\n  brigade diagnose UNU-01 UNU-12\n  brigade diagnose --all --ranks 4 "
      "--backend shm --json verdicts.json");
  command->add_option("id", given->ids, "faults to run");
  command->add_flag("--list", given->list, "list the faults");
  command->add_flag("--all", given->all, "run all of them");
  command->add_option("--ranks", given->options.ranks, "number of ranks (default: 2, or what the fault needs)")
      ->check(CLI::Range(2, 64));
  command->add_option("--backend", given->options.backend, "threads, shm or gloo")->capture_default_str();
  command->add_option("--bucket-mb", given->options.bucket_mb, "cap of the buckets in MiB")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--json", given->json_file, "write the results as JSON to a file (- for standard output)");
  command->callback([given, &exit_code] {
    if (given->list) {
      for (const Fault& fault : all_faults())
        std::cout << fmt::format("{:8} {}{}\n", fault.id, fault.title,
                                 fault.expected.detected ? "" : "  (control: must not be reported)");
      return;
    }
    check_backend(given->options.backend);
    std::vector<const Fault*> chosen;
    for (const std::string& id : given->ids)
      chosen.push_back(&find_fault(id));
    for (const Fault& fault : all_faults()) {
      if (given->all) chosen.push_back(&fault);
    }
    if (chosen.empty()) throw ValueError("diagnose: name at least one fault, or --all; --list shows them");
    json output = json_envelope(command_line());
    std::ostream& report = given->json_file == "-" ? std::cerr : std::cout;
    int failures = 0;
    for (const Fault* fault : chosen) {
      const Diagnosis found = diagnose(*fault, given->options);
      report << fmt::format("\n{} {}\n", fault->id, fault->title);
      if (found.detected) report << found.text << "\n";
      if (found.passed) {
        report << (found.detected ? "=> as expected; with the advised fix the same steps run right\n"
                                  : "=> as expected: nothing to report\n");
      } else {
        report << "=> NOT as expected: " << found.why_not << "\n";
        ++failures;
      }
      json verdicts = json::array();
      for (const dist::Verdict& verdict : found.verdicts)
        verdicts.push_back(to_json(verdict));
      output["results"].push_back({{"id", fault->id},
                                   {"title", fault->title},
                                   {"ranks", given->options.ranks ? given->options.ranks : fault->ranks},
                                   {"backend", given->options.backend},
                                   {"passed", found.passed},
                                   {"detected", found.detected},
                                   {"hung", false},
                                   {"seconds", found.seconds},
                                   {"verdicts", verdicts}});
    }
    if (!given->json_file.empty()) write_json(given->json_file, output);
    exit_code = failures == 0 ? 0 : 1;
  });
}

}  // namespace brigade::lab
