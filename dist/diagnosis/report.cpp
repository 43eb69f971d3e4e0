#include <brigade/dist/diagnosis/report.h>

#include <brigade/dist/reducer.h>

#include <fmt/format.h>

#include <sstream>

namespace brigade::dist {

namespace {

constexpr const char* kAfterwards =
    "The gradients of this backward were cleared on every rank before any optimizer step; training can go on without "
    "wrapping again.";

// A line that may stand for itself between newlines.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

ReductionError rank_failed(std::span<const RankReport> reports, SourceLocation where) {
  Verdict verdict;
  verdict.kind = "rank_failed";
  for (const RankReport& report : reports) {
    if (report.failure.empty()) continue;
    verdict.ranks.push_back(report.rank);
    verdict.message +=
        fmt::format("{}rank {} failed in its backward{}: {}", verdict.message.empty() ? "" : "; ", report.rank,
                    report.backward.empty() ? "" : " at " + report.backward, report.failure);
  }
  verdict.cause.text = verdict.message;
  verdict.advice = "mend the error on the rank that is named; the other ranks only report it";
  return ReductionError(verdict.message + ". " + kAfterwards, {verdict}, where);
}

ReductionError backward_mismatch(std::span<const RankReport> reports, SourceLocation where) {
  Verdict verdict;
  verdict.kind = "backward_mismatch";
  verdict.message = "the ranks are not in the same backward:";
  for (const RankReport& report : reports) {
    if (report.round != reports.front().round) verdict.ranks.push_back(report.rank);
    verdict.message += fmt::format("{} rank {} is in its reduced backward number {} (at {})",
                                   report.rank == 0 ? "" : ",", report.rank, report.round, report.backward);
  }
  verdict.cause.text = verdict.message;
  verdict.advice =
      "let every rank run the same number of backwards on the wrapped module (same number of batches, no skipped "
      "steps)";
  return ReductionError(verdict.message + ". " + verdict.advice + ". " + kAfterwards, {verdict}, where);
}

std::string parameters_in_words(const Verdict& verdict) {
  constexpr size_t kShown = 8;
  std::string names;
  int64_t bytes = 0;
  for (size_t i = 0; i < verdict.parameters.size(); ++i) {
    bytes += verdict.parameters[i].bytes;
    if (i < kShown) names += (i > 0 ? ", " : "") + verdict.parameters[i].name;
  }
  if (verdict.parameters.size() > kShown) names += fmt::format(" and {} more", verdict.parameters.size() - kShown);
  return fmt::format("{} ({})", names, bytes_in_words(bytes));
}

std::string plural(const std::vector<int>& ranks) { return ranks.size() == 1 ? "rank" : "ranks"; }

// One verdict for each group of parameters that are missing on the same ranks for the same cause.
std::vector<Verdict> group_by_cause(std::span<const RankReport> reports, std::span<const NamedParameter> parameters) {
  std::vector<Verdict> verdicts;
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    ParameterVerdict parameter{parameters[i].name, static_cast<int64_t>(parameters[i].tensor.nbytes()), {}, {}};
    Cause cause;
    std::string elsewhere;
    for (const RankReport& report : reports) {
      if (report.ready[i]) {
        parameter.ready_ranks.push_back(report.rank);
        continue;
      }
      parameter.missing_ranks.push_back(report.rank);
      const auto found = report.causes.find(i);
      if (found == report.causes.end()) continue;
      if (cause.text.empty()) {
        cause = found->second;
      } else if (!cause.same_as(found->second)) {
        elsewhere += fmt::format("; on rank {}: {}", report.rank, found->second.text);
      }
    }
    if (parameter.missing_ranks.empty()) continue;
    cause.note += elsewhere;
    bool grouped = false;
    for (Verdict& verdict : verdicts) {
      if (!verdict.cause.same_as(cause) || verdict.parameters.front().missing_ranks != parameter.missing_ranks)
        continue;
      verdict.parameters.push_back(parameter);
      grouped = true;
      break;
    }
    if (grouped) continue;
    Verdict verdict;
    verdict.kind = "unused_parameters";
    verdict.ranks = parameter.missing_ranks;
    verdict.advice = advice_for(cause.kind, !parameter.ready_ranks.empty());
    verdict.cause = std::move(cause);
    verdict.parameters.push_back(std::move(parameter));
    verdicts.push_back(std::move(verdict));
  }
  for (Verdict& verdict : verdicts) {
    const ParameterVerdict& first = verdict.parameters.front();
    verdict.message = fmt::format("{}: never ready on {} {}", parameters_in_words(verdict), plural(first.missing_ranks),
                                  list_of(first.missing_ranks));
    if (!first.ready_ranks.empty()) {
      verdict.message += fmt::format(" (ready on {} {})", plural(first.ready_ranks), list_of(first.ready_ranks));
    }
    verdict.message += fmt::format("\n    cause: {}", verdict.cause.text);
    if (!verdict.cause.note.empty()) verdict.message += "\n    note:  " + verdict.cause.note;
    verdict.message += "\n    fix:   " + verdict.advice;
  }
  return verdicts;
}

}  // namespace

std::string encode(const RankReport& report) {
  std::string text =
      fmt::format("{}\n{}\n{}\n{}\n", report.rank, report.round, one_line(report.backward), one_line(report.failure));
  for (bool ready : report.ready)
    text += ready ? '1' : '0';
  text += '\n';
  for (const auto& [parameter, cause] : report.causes)
    text += fmt::format("{} {}\n", parameter, encode(cause));
  return text;
}

RankReport decode_report(const std::string& text) {
  std::istringstream in(text);
  RankReport report;
  std::string line;
  const auto next = [&] {
    if (!std::getline(in, line)) throw DistError("an error report from a rank ended too early: got '" + text + "'");
    return line;
  };
  report.rank = std::atoi(next().c_str());
  report.round = std::strtoull(next().c_str(), nullptr, 10);
  report.backward = next();
  report.failure = next();
  for (char c : next())
    report.ready.push_back(c == '1');
  while (std::getline(in, line)) {
    const size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    report.causes.emplace(static_cast<uint32_t>(std::strtoul(line.c_str(), nullptr, 10)),
                          decode_cause(line.substr(space + 1)));
  }
  return report;
}

ReductionError compose_error(std::span<const RankReport> reports, std::span<const NamedParameter> parameters,
                             bool find_unused_parameters, bool failed, bool same_round, SourceLocation where) {
  for (const RankReport& report : reports) {
    if (report.ready.size() != parameters.size()) {
      return ReductionError(fmt::format("rank {} reports {} parameters, expected {}", report.rank, report.ready.size(),
                                        parameters.size()),
                            {}, where);
    }
  }
  if (failed) return rank_failed(reports, where);
  if (!same_round) return backward_mismatch(reports, where);

  std::vector<Verdict> verdicts = group_by_cause(reports, parameters);
  std::string message =
      "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that "
      "your module has "
      "parameters that were not used in producing loss.";
  if (!find_unused_parameters) {
    message +=
        " You can enable unused parameter detection by passing the keyword argument `find_unused_parameters=True`, and "
        "by making sure "
        "all `forward` function outputs participate in calculating loss.";
  }
  message += fmt::format("\nBrigade found it at the end of the same backward (number {}, {}). {}\n",
                         reports.front().round, to_string(where), kAfterwards);
  for (const Verdict& verdict : verdicts)
    message += "\n  " + verdict.message;
  // The lines of PyTorch that people search for.
  for (const RankReport& report : reports) {
    std::string names;
    std::string indices;
    for (uint32_t i = 0; i < parameters.size(); ++i) {
      if (report.ready[i]) continue;
      names += (names.empty() ? "" : ", ") + parameters[i].name;
      indices += " " + std::to_string(i);
    }
    if (names.empty()) continue;
    message += fmt::format("\nParameters which did not receive grad for rank {}: {}", report.rank, names);
    message += fmt::format("\nParameter indices which did not receive grad for rank {}:{}", report.rank, indices);
  }
  return ReductionError(message, std::move(verdicts), where);
}

}  // namespace brigade::dist
