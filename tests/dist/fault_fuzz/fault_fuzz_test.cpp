// Random training programs, each with a random fault and once more without it, against an oracle that knows what was
// planted. A fault has to be reported in its step, on all ranks alike, with its kind, cause, line, parameters and
// ranks; the program without it (the fault undone) has to run without a report and end as one process does.
//
// BRIGADE_FAULTS: how many of each (500); BRIGADE_FAULTS_SEED: the first seed (1); BRIGADE_FAULTS_BACKEND: "threads";
// BRIGADE_FAULTS_SHOWN: how many flaws are shown, with the smallest program of each (10).
#include "../processes.h"
#include "spec.h"

#include <brigade/core/warning.h>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

namespace brigade::test::fault_fuzz_test {
using namespace test::fuzz;  // NOLINT: the file is about it

std::string setting(const char* name, const char* otherwise) {
  const char* given = std::getenv(name);
  return given ? given : otherwise;
}

std::vector<std::string> run(const Spec& spec) {
  std::vector<std::string> results;
  for (const test::Rank& rank : test::run_ranks(
           setting("BRIGADE_FAULTS_BACKEND", "threads"), spec.ranks,
           [&](const dist::ProcessGroupPtr& group) { return train(spec, group); }, std::chrono::seconds(10)))
    results.push_back(rank.hung ? "hung" : rank.error.empty() ? rank.result : rank.error + ": " + rank.text);
  return results;
}

std::string compare(const std::string& found, const std::string& expected) {
  std::istringstream a(found);
  std::istringstream b(expected);
  std::string x;
  std::string y;
  while (b >> y) {
    if (!(a >> x)) return "too few values";
    if (y == "ok") {
      if (x != "ok") return found;
      continue;
    }
    const double value = std::stod(y);
    if (!(std::abs(std::stod(x) - value) <= 1e-9 * std::max(1.0, std::abs(value))))
      return fmt::format("{} where one process has {}", x, y);
  }
  return a >> x && x != "planted" ? found : "";
}

// Runs a program without a fault. Returns "" or what was wrong.
std::string judge_healthy(const Spec& spec) {
  const std::string expected = train_alone(spec);
  const std::vector<std::string> results = run(spec);
  for (size_t r = 0; r < results.size(); ++r) {
    if (const std::string wrong = compare(results[r], expected); !wrong.empty())
      return fmt::format("rank {}: {}", r, wrong);
  }
  return "";
}

// What a rank reported, from its error or from its warnings.
struct Told {
  uint32_t planted = 0;
  std::set<int> iterations;  // of warnings
  std::set<std::string> kinds, causes, places, ranks, parameters;
};

Told told_by(const std::string& result, bool warnings) {
  Told told;
  std::istringstream lines(result);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string kind, cause, place, ranks, parameters;
    words >> kind;
    if (kind == "planted") {
      words >> told.planted;
      continue;
    }
    if (kind == "|" || (kind == "warning") != warnings) continue;
    if (int iteration = 0; warnings && words >> iteration >> kind) told.iterations.insert(iteration);
    words >> cause >> place >> ranks >> parameters;
    told.kinds.insert(kind);
    told.causes.insert(cause);
    told.places.insert(place.substr(place.rfind(':') + 1));
    told.ranks.insert(ranks);
    std::istringstream names(parameters.substr(1, parameters.size() - 2));
    for (std::string name; std::getline(names, name, ',');)
      told.parameters.insert(name);
  }
  return told;
}

// Either wrapper may report a shared module, except in warnings that each wrapper gives for itself.
std::set<std::string> by_names_of_net(const std::set<std::string>& parameters, const Spec& spec) {
  const std::string module = fmt::format("layer{}.", *spec.shared);
  std::set<std::string> names;
  for (const std::string& name : parameters) {
    if (spec.fault.what == Fault::NotCleared && name.starts_with(module)) continue;
    names.insert(name.starts_with("shared.") ? module + name.substr(7) : name);
  }
  return names;
}

struct Judgement {
  bool found = false;  // an error on every rank, in its step
  std::string flaw;    // "" or what differs from the expectation
};

Judgement judge_faulty(const Spec& spec) {
  const std::vector<std::string> results = run(spec);
  const Expected expected = expected_of(spec);
  Judgement judgement;
  std::vector<Told> told;
  std::set<std::string> planted;
  for (size_t r = 0; r < results.size(); ++r) {
    if (expected.silent >> r & 1U) continue;
    told.push_back(told_by(results[r], expected.is_warning));
    if (spec.shared) told.back().parameters = by_names_of_net(told.back().parameters, spec);
    if (told.back().planted != 0) planted.insert(std::to_string(told.back().planted));
    const int step = spec.fault.step + expected.later + static_cast<int>(expected.ahead >> r & 1U);
    const bool in_time = expected.is_warning
                             ? told.back().iterations == std::set<int>{spec.fault.step + 1 + expected.later}
                             : results[r].starts_with(fmt::format("error {} ", step));
    if (in_time) continue;
    judgement.flaw = fmt::format("rank {}: {}", r, results[r]);
    return judgement;
  }
  judgement.found = true;
  for (size_t i = 0; i < told.size(); ++i) {
    const auto check = [&](const char* what, const std::set<std::string>& found, const std::set<std::string>& wanted) {
      if (found == wanted || !judgement.flaw.empty()) return;
      judgement.flaw = fmt::format("{} {}, expected {}; it told: {}", what, found, wanted, results[i]);
    };
    check("kind", told[i].kinds, {expected.kind});
    check("cause", told[i].causes, {expected.cause});
    if (expected.has_line) check("line", told[i].places, planted);
    if (!expected.ranks.empty()) check("ranks", told[i].ranks, {fmt::format("[{}]", fmt::join(expected.ranks, ","))});
    if (!expected.parameters.empty())
      check("parameters", told[i].parameters, {expected.parameters.begin(), expected.parameters.end()});
  }
  return judgement;
}

// The smallest program that still goes wrong.
template <class Judge>
Spec shrink(Spec spec, Judge&& goes_wrong) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (const Spec& other : simpler(spec)) {
      if (!goes_wrong(other)) continue;
      spec = other;
      smaller = true;
      break;
    }
  }
  return spec;
}

TEST_CASE("random faults are found and explained, and the programs without them run without a word") {
  const uint64_t count = std::stoull(setting("BRIGADE_FAULTS", "500"));
  const uint64_t first = std::stoull(setting("BRIGADE_FAULTS_SEED", "1"));
  const auto printed = set_warning_handler([](const Warning&) {});  // warnings are read from the wrapper
  struct Row {
    int planted = 0, found = 0, flawless = 0;
  };
  std::map<std::string, Row> table;
  Row all;
  int reported = 0;
  int shown = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Spec spec = random_spec(seed, true);
    const Judgement judgement = judge_faulty(spec);
    for (Row* row : {&all, &table[name(spec.fault.what)]}) {
      ++row->planted;
      row->found += judgement.found;
      row->flawless += judgement.found && judgement.flaw.empty();
    }
    if (!judgement.flaw.empty() && shown++ < std::stoi(setting("BRIGADE_FAULTS_SHOWN", "10"))) {
      const Spec small = shrink(spec, [](const Spec& other) { return !judge_faulty(other).flaw.empty(); });
      MESSAGE("seed " << seed << ": " << judge_faulty(small).flaw << "\n" << in_words(small));
    }
    Spec healthy = spec;
    healthy.fault = {};
    const std::string wrong = judge_healthy(healthy);
    if (wrong.empty()) continue;
    if (reported++ < 10) {
      const Spec small = shrink(healthy, [](const Spec& other) { return !judge_healthy(other).empty(); });
      MESSAGE("seed " << seed << ", healthy: " << judge_healthy(small) << "\n" << in_words(small));
    }
  }
  set_warning_handler(printed);
  for (const auto& [fault, row] : table)
    fmt::print("{:<28} {:>6} planted {:>6} found {:>6} without a flaw\n", fault, row.planted, row.found, row.flawless);
  fmt::print("{:<28} {:>6} planted {:>6} found {:>6} without a flaw; of as many healthy ones {} reported or wrong\n",
             "all", all.planted, all.found, all.flawless, reported);
  CHECK(all.found * 1000 >= all.planted * 995);
  CHECK(all.flawless * 100 >= all.planted * 97);
  CHECK(reported == 0);
}

}  // namespace brigade::test::fault_fuzz_test
