// Runs a fault on every rank, brings the verdicts back as JSON, and compares with those expected.
#include <brigade/lab/faults/diagnosis.h>

#include <brigade/autograd/gradient_scale.h>
#include <brigade/core/device_runtime.h>
#include <brigade/core/random.h>
#include <brigade/core/warning.h>
#include <brigade/dist/diagnosis/advisories.h>
#include <brigade/lab/rank_job.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <set>
#include <sstream>

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
  const json line = verdict.cause.place ? json(verdict.cause.place.line) : json(nullptr);
  return {{"kind", verdict.kind},
          {"severity", dist::name(verdict.severity)},
          {"iteration", verdict.iteration},
          {"message", verdict.message},
          {"parameters", parameters},
          {"ranks", verdict.ranks},
          {"advice", verdict.advice},
          {"cause",
           {{"kind", dist::name(verdict.cause.kind)},
            {"op", verdict.cause.op},
            {"file", verdict.cause.place.file},
            {"line", line},
            {"module", verdict.cause.module},
            {"text", verdict.cause.text},
            {"note", verdict.cause.note}}}};
}

dist::Verdict from_json(const json& value) {
  dist::Verdict verdict;
  verdict.kind = value.at("kind");
  verdict.message = value.at("message");
  verdict.ranks = value.at("ranks").get<std::vector<int>>();
  verdict.advice = value.at("advice");
  verdict.iteration = value.at("iteration");
  for (const dist::Severity severity : {dist::Severity::Error, dist::Severity::Warning, dist::Severity::Note}) {
    if (value.at("severity") == dist::name(severity)) verdict.severity = severity;
  }
  for (const json& parameter : value.at("parameters")) {
    verdict.parameters.push_back({parameter.at("name"), parameter.at("bytes"),
                                  parameter.at("ready_ranks").get<std::vector<int>>(),
                                  parameter.at("missing_ranks").get<std::vector<int>>()});
  }
  const json& cause = value.at("cause");
  verdict.cause.op = cause.at("op");
  verdict.cause.place.file = cause.at("file");
  verdict.cause.place.line = cause.at("line").is_null() ? 0 : cause.at("line").get<uint32_t>();
  verdict.cause.module = cause.at("module");
  verdict.cause.text = cause.at("text");
  verdict.cause.note = cause.at("note");
  const std::string kind = cause.at("kind");
  for (int i = 0; i <= static_cast<int>(dist::CauseKind::Unknown); ++i) {
    if (kind == dist::name(static_cast<dist::CauseKind>(i))) verdict.cause.kind = static_cast<dist::CauseKind>(i);
  }
  return verdict;
}

json all_to_json(const std::vector<dist::Verdict>& verdicts) {
  json list = json::array();
  for (const dist::Verdict& verdict : verdicts)
    list.push_back(to_json(verdict));
  return list;
}

std::string bits_of(const std::vector<Tensor>& tensors) {
  std::string bits;
  for (const Tensor& tensor : tensors) {
    const size_t begin = bits.size();
    bits.resize(begin + tensor.nbytes());
    copy_bytes(bits.data() + begin, kCPU, tensor.raw_data(), tensor.device(), tensor.nbytes());
  }
  return bits;
}

bool equal_everywhere(dist::ProcessGroup& group, const std::vector<Tensor>& tensors) {
  const std::vector<std::string> all = group.all_gather_text(bits_of(tensors), "parameters, to compare");
  return std::all_of(all.begin(), all.end(), [&](const std::string& each) { return each == all[0]; });
}

// Warnings of layers that know no verdicts, beside those that the ranks give.
std::vector<dist::Verdict> with_warnings(std::vector<dist::Verdict> verdicts, const std::vector<Warning>& warnings) {
  for (const Warning& warning : warnings) {
    dist::Verdict verdict;
    verdict.kind = "warning";
    verdict.severity = dist::Severity::Warning;
    verdict.message = warning.message;
    verdict.advice = warning.advice;
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

// The group in which ranks train on `device`, which this makes the current one.
dist::ProcessGroupPtr group_over_devices(const dist::ProcessGroupPtr& group, Device device) {
  set_current_device(device);
  const bool needs_way = device.type != DeviceType::CPU && std::string(group->backend()) == "threads";
  return needs_way ? dist::make_nccl_or_staged_group(group) : group;
}

// On one rank: runs the steps and tells what was reported, and whether the parameters are equal
// over ranks.
std::string fault_job(const dist::ProcessGroupPtr& of_host, const std::string& arguments) {
  const json given = json::parse(arguments);
  const Fault& fault = find_fault(given.at("id").get_ref<const std::string&>());
  FaultContext context;
  std::vector<Tensor> watched;
  std::set<uint32_t> fault_lines;
  context.device = choose_device(given.at("device").get<std::string>(), local_rank(*of_host));
  const dist::ProcessGroupPtr group = context.group = group_over_devices(of_host, context.device);
  context.fixed = given.at("fixed");
  context.options.find_unused_parameters = given.at("find_unused");
  context.options.bucket_cap_mb = context.options.first_bucket_mb = given.at("bucket_mb");
  context.watched = &watched;
  context.fault_lines = &fault_lines;
  manual_seed(7);
  json result{{"raised", false}, {"text", ""}, {"verdicts", json::array()}, {"equal", true}, {"in_time", nullptr}};
  const dist::AdvisoryCollector collector;
  const WarningCollector warnings;
  try {
    result["equal"] = equal_everywhere(*group, fault.run(context));
  } catch (const Error& error) {
    result["raised"] = true;
    result["text"] = error.what();
    if (const auto* diagnosed = dynamic_cast<const dist::Diagnosed*>(&error)) {
      result["verdicts"] = all_to_json(diagnosed->verdicts());
    } else {
      dist::Verdict verdict;
      verdict.kind = "error";
      verdict.message = verdict.advice = error.what();
      for (int r = 0; r < group->size(); ++r)
        verdict.ranks.push_back(r);
      verdict.cause.place = error.where();
      result["verdicts"] = all_to_json({verdict});
    }
    const bool at_a_step =
        dynamic_cast<const dist::ConsistencyError*>(&error) || dynamic_cast<const autograd::ScalerError*>(&error);
    const bool group_lives = dynamic_cast<const dist::ReductionError*>(&error) || (at_a_step && !watched.empty());
    const bool at_construction = !result["verdicts"].empty() && result["verdicts"][0]["kind"] == "model_mismatch";
    if (at_construction) {
      result["in_time"] = true;  // nothing has been trained
    } else if (group_lives) {
      result["in_time"] = equal_everywhere(*group, watched);
    }
  } catch (const std::exception& error) {
    result["raised"] = true;
    result["text"] = error.what();  // the rank's own trouble
    // Its peers are told in the same backward, and compare.
    if (fault.expected.kind == "rank_failed") result["in_time"] = equal_everywhere(*group, watched);
  }
  result["advisories"] = all_to_json(with_warnings(collector.verdicts(), warnings.warnings()));
  result["fault_lines"] = fault_lines;
  result["group"] = group->backend();
  return result.dump();
}

const AddRankJob add_fault_job("fault", &fault_job);

// A result per rank; null for a rank that ended without one.
std::vector<json> run_fault(const Fault& fault, const DiagnoseOptions& options, int ranks, bool fixed) {
  const bool find_unused =
      fixed && (fault.expected.kind == "unused_parameters" || fault.expected.kind == "static_graph_changed");
  const json arguments{{"id", fault.id},
                       {"fixed", fixed},
                       {"find_unused", find_unused},
                       {"bucket_mb", options.bucket_mb},
                       {"device", options.device}};
  const RankJobOutcome outcome =
      run_rank_job("fault", arguments.dump(), options.backend, ranks, fixed ? std::chrono::seconds(30) : fault.timeout);
  std::vector<json> results;
  for (size_t rank = 0; rank < outcome.ranks.size(); ++rank) {
    const RankResult& result = outcome.ranks[rank];
    if (result.ok) {
      results.push_back(json::parse(result.text));
    } else if (fault.needs_processes && !fixed) {
      results.emplace_back(nullptr);
    } else {
      throw DistError("{}: rank {} ended with {}: {}", fault.id, rank, result.error, result.text);
    }
  }
  return results;
}

// Kinds that each rank words from its own place.
bool is_about_a_rank(const std::string& kind) { return kind == "rank_lost" || kind == "collective_timeout"; }

// Kinds that the other ranks report of a rank that throws an error of its own.
bool is_told_by_others(const std::string& kind) { return kind == "rank_failed" || kind == "wrongly_scaled"; }

// "" when one verdict is as expected.
std::string compare(const Fault& fault, const std::vector<dist::Verdict>& verdicts, int ranks) {
  const Expectation& expected = fault.expected;
  std::vector<int> expected_ranks = expected.ranks;
  for (int r = 0; expected.ranks.empty() && r < ranks; ++r)
    expected_ranks.push_back(r);
  const bool any_ranks = expected_ranks.front() == kAnyRanks;
  std::set<std::string> named;
  for (const dist::Verdict& verdict : verdicts) {
    if (verdict.kind != expected.kind) return fmt::format("kind is {}, expected {}", verdict.kind, expected.kind);
    if (!expected.cause.empty() && dist::name(verdict.cause.kind) != expected.cause)
      return fmt::format("cause is {}, expected {}", dist::name(verdict.cause.kind), expected.cause);
    if (expected.module != "*" && verdict.cause.module != expected.module)
      return fmt::format("the cause names module '{}', expected '{}'", verdict.cause.module, expected.module);
    if (!expected.op.empty() && verdict.cause.op != expected.op)
      return fmt::format("the cause names '{}', expected '{}'", verdict.cause.op, expected.op);
    if (verdict.cause.note.find(expected.note) == std::string::npos)
      return fmt::format("the cause notes '{}', expected '{}'", verdict.cause.note, expected.note);
    if (expected.file_and_line && (!verdict.cause.place || verdict.cause.place.file != fault.file))
      return fmt::format("the cause names {}:{}, expected a line of {}", verdict.cause.place.file,
                         verdict.cause.place.line, fault.file);
    if (verdict.advice.empty()) return "there is no advice";
    if (!any_ranks && verdict.ranks != expected_ranks && !verdict.ranks.empty())
      return fmt::format("it names {}, expected {}", dist::ranks_in_words(verdict.ranks),
                         dist::ranks_in_words(expected_ranks));
    for (const auto& parameter : verdict.parameters) {
      named.insert(parameter.name);
      if (expected.kind == "unused_parameters" && parameter.missing_ranks != expected_ranks)
        return fmt::format("{} is missing on {}, expected {}", parameter.name,
                           dist::ranks_in_words(parameter.missing_ranks), dist::ranks_in_words(expected_ranks));
    }
  }
  if (!expected.parameters.empty() &&
      named != std::set<std::string>(expected.parameters.begin(), expected.parameters.end()))
    return fmt::format("it names the parameters {}", fmt::join(named, ", "));
  return "";
}

bool names_line(const std::string& text, const std::string& file_and_line) {
  for (size_t at = text.find(file_and_line); at != std::string::npos; at = text.find(file_and_line, at + 1)) {
    const size_t end = at + file_and_line.size();
    if (end == text.size() || std::isdigit(static_cast<unsigned char>(text[end])) == 0) return true;
  }
  return false;
}

// "" when the text has the expected words, and text or causes name every line that the program has marked.
std::string compare_text(const Fault& fault, const std::string& text, const std::vector<dist::Verdict>& verdicts,
                         const json& fault_lines) {
  for (const std::string& words : fault.expected.words) {
    if (text.find(words) == std::string::npos) return fmt::format("the text has no '{}'", words);
  }
  for (const json& line : fault_lines) {
    const Place place(fault.file, line.get<uint32_t>());
    const auto points_there = [&](const dist::Verdict& verdict) {
      return verdict.cause.place == place || names_line(verdict.cause.text + verdict.cause.note, to_string(place)) ||
             (text.find(place.file + ":") != std::string::npos && names_line(text, fmt::format("line {}", place.line)));
    };
    if (!names_line(text, to_string(place)) && std::none_of(verdicts.begin(), verdicts.end(), points_there))
      return fmt::format("{} is not named", to_string(place));
  }
  return "";
}

std::vector<dist::Verdict> verdicts_in(const json& list, const char* kind = nullptr) {
  std::vector<dist::Verdict> verdicts;
  for (const json& entry : list) {
    if (!kind || entry.at("kind") == kind) verdicts.push_back(from_json(entry));
  }
  return verdicts;
}

// What a run without a fault must look like. That a rank is slow is the machine's doing, except in a fault about that.
std::string expect_silence(const Fault& fault, const std::vector<json>& results) {
  for (size_t rank = 0; rank < results.size(); ++rank) {
    if (results[rank].is_null()) return fmt::format("rank {} ended without a result", rank);
    if (results[rank].at("raised"))
      return fmt::format("rank {}: {}", rank, results[rank].at("text").get<std::string>());
    for (const dist::Verdict& verdict : verdicts_in(results[rank].at("advisories"))) {
      if (verdict.severity == dist::Severity::Note) continue;
      if (verdict.kind == "slow_rank" && fault.expected.kind != "slow_rank") continue;
      return fmt::format("rank {}: {}", rank, verdict.message);
    }
    if (!results[rank].at("equal")) return fmt::format("parameters of rank {} differ from rank 0", rank);
  }
  return "";
}

// A rank names its own device, where all others say the same.
std::string without_numbers_of_devices(const std::string& text) {
  std::string result;
  for (size_t at = 0; at < text.size(); ++at) {
    result += text[at];
    if (!result.ends_with("cuda:")) continue;
    while (at + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[at + 1])) != 0)
      ++at;
  }
  return result;
}

// Without the lines that name this rank's own step: "Not averaged: a.weight, before AdamW.step() at a.cpp:5 (not taken)".
std::string without_own_step(const std::string& text) {
  std::string common;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.find(".step() at ") == std::string::npos) common += line + "\n";
  return common;
}

// What all ranks have to say alike.
std::string common_text(const std::string& text) { return without_numbers_of_devices(without_own_step(text)); }

void judge_error(const Fault& fault, const std::vector<json>& results, int ranks, Diagnosis& found) {
  const Expectation& expected = fault.expected;
  // A rank at fault need not see what its peers see.
  const bool about_a_rank = is_about_a_rank(expected.kind);
  const bool told_by_others = is_told_by_others(expected.kind);
  std::vector<size_t> witnesses;
  for (size_t rank = 0; rank < results.size(); ++rank) {
    const bool at_fault =
        std::find(expected.ranks.begin(), expected.ranks.end(), static_cast<int>(rank)) != expected.ranks.end();
    if (!at_fault || !(about_a_rank || told_by_others)) {
      witnesses.push_back(rank);
    } else if (told_by_others && !results[rank].at("raised")) {
      found.why_not = fmt::format("rank {} has thrown nothing of its own", rank);
      return;
    }
  }
  for (const size_t rank : witnesses) {
    const json& result = results[rank];
    if (result.is_null() || !result.at("raised")) {
      found.why_not = fmt::format("nothing was reported on rank {}", rank);
      for (const dist::Verdict& verdict :
           result.is_null() ? std::vector<dist::Verdict>{} : verdicts_in(result.at("advisories")))
        found.why_not += " (only: " + verdict.message + ")";
      return;
    }
    const std::vector<dist::Verdict> verdicts = verdicts_in(result.at("verdicts"));
    if (rank == witnesses.front()) {
      found.detected = true;
      found.text = result.at("text");
      found.verdicts = verdicts;
      if (!result.at("in_time").is_null()) found.in_time = result.at("in_time").get<bool>();
    }
    found.why_not = verdicts.empty() ? fmt::format("rank {} raised an error without a verdict: {}", rank,
                                                   result.at("text").get<std::string>())
                                     : compare(fault, verdicts, ranks);
    if (found.why_not.empty())
      found.why_not = compare_text(fault, result.at("text"), verdicts, result.at("fault_lines"));
    if (!found.why_not.empty()) return;
    if (!about_a_rank && common_text(result.at("text")) != common_text(found.text)) {
      found.why_not = fmt::format("rank {} raised another text than rank {}", rank, witnesses.front());
      return;
    }
  }
}

void judge_advisory(const Fault& fault, const std::vector<json>& results, int ranks, Diagnosis& found) {
  for (const json& result : results) {
    if (result.at("raised")) {
      found.why_not = "an error instead of an advisory: " + result.at("text").get<std::string>();
      return;
    }
    std::vector<dist::Verdict> verdicts = verdicts_in(result.at("advisories"), fault.expected.kind.c_str());
    if (verdicts.empty()) continue;
    found.detected = true;
    found.in_time = true;  // it was said before the step that follows
    found.verdicts = std::move(verdicts);
    for (const dist::Verdict& verdict : found.verdicts)
      found.text += (found.text.empty() ? "" : "\n") + verdict.message + dist::kDo + verdict.advice;
    found.why_not = compare(fault, found.verdicts, ranks);
    if (found.why_not.empty())
      found.why_not = compare_text(fault, found.text, found.verdicts, result.at("fault_lines"));
    for (const dist::Verdict& verdict : found.verdicts) {
      if (verdict.severity != fault.expected.severity)
        found.why_not = fmt::format("severity is {}, expected {}", dist::name(verdict.severity),
                                    dist::name(fault.expected.severity));
    }
    return;
  }
  found.why_not = "nothing was reported";
}

}  // namespace

std::string to_json(const std::vector<dist::Verdict>& verdicts) { return all_to_json(verdicts).dump(); }

Diagnosis diagnose(const Fault& fault, const DiagnoseOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const int ranks = options.ranks > 0 ? options.ranks : fault.ranks;
  Diagnosis found;
  if (fault.needs_processes && options.backend == "threads") {
    found.skipped = true;
    found.why_not = "a rank that is a thread cannot die alone; run it with --backend shm or gloo";
    return found;
  }
  const std::vector<json> results = run_fault(fault, options, ranks, false);
  for (const json& result : results)
    if (!result.is_null()) found.group = result.at("group");
  if (!fault.expected.detected) {
    found.why_not = expect_silence(fault, results);
    found.detected = !found.why_not.empty();
    if (found.detected) found.why_not = "a control was reported: " + found.why_not;
    found.text = found.why_not;
  } else if (fault.expected.severity == dist::Severity::Error) {
    judge_error(fault, results, ranks, found);
  } else {
    judge_advisory(fault, results, ranks, found);
  }
  if (fault.expected.detected && found.why_not.empty()) {
    const std::string wrong = expect_silence(fault, run_fault(fault, options, ranks, true));
    if (!wrong.empty()) found.why_not = "the advised fix does not help: " + wrong;
  }
  found.passed = found.why_not.empty();
  found.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return found;
}

}  // namespace brigade::lab
