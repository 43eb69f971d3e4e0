#include <brigade/dist/diagnosis/report.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <set>
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
  verdict.cause.kind = CauseKind::Exception;
  verdict.iteration = reports.front().round;
  for (const RankReport& report : reports) {
    if (report.failure.empty()) continue;
    verdict.ranks.push_back(report.rank);
    verdict.message +=
        fmt::format("{}rank {} failed in its backward{}: {}", verdict.message.empty() ? "" : "; ", report.rank,
                    report.backward.empty() ? "" : " at " + report.backward, report.failure);
  }
  verdict.cause.text = verdict.message;
  verdict.advice = "repair the error on the rank that is named; the other ranks only report it";
  return ReductionError(verdict.message + ". " + kAfterwards, {verdict}, where);
}

ReductionError backward_mismatch(std::span<const RankReport> reports, SourceLocation where) {
  Verdict verdict;
  verdict.kind = "backward_mismatch";
  verdict.cause.kind = CauseKind::StepsDiffer;
  verdict.iteration = reports.front().round;
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

// What is printed of a verdict: the cause first, then whom it concerns, then what to do.
std::string paragraph(const Verdict& verdict, const std::string& parameters) {
  std::string text = "cause:      " + (verdict.cause.text.empty() ? "not known" : verdict.cause.text);
  if (!verdict.cause.note.empty()) text += "\nnote:       " + verdict.cause.note;
  return text + "\nparameters: " + parameters + "\nfix:        " + verdict.advice;
}

// The text of an error: what Brigade knows, and after it what PyTorch says in this case, for those who search for that.
std::string compose_text(std::span<const Verdict> verdicts, uint64_t round, SourceLocation where,
                         const std::string& words_of_pytorch) {
  std::string text;
  for (const Verdict& verdict : verdicts)
    text += verdict.message + "\n\n";
  return text + fmt::format("Found at the end of backward number {} ({}). {}\n\nIn the words of PyTorch: {}", round,
                            to_string(where), kAfterwards, words_of_pytorch);
}

// Bits of parameters as text, and back.
std::string bits(const std::vector<bool>& values) {
  std::string text;
  for (const bool value : values)
    text += value ? '1' : '0';
  return text;
}
std::vector<bool> bits(const std::string& text) {
  std::vector<bool> values;
  for (const char c : text)
    values.push_back(c == '1');
  return values;
}

ReductionError graph_changed(std::span<const RankReport> reports, std::span<const NamedParameter> parameters,
                             SourceLocation where) {
  std::vector<Verdict> verdicts;
  bool fewer = false;
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    std::vector<int> now_used;
    std::vector<int> now_unused;
    ParameterVerdict parameter{parameters[i].name, static_cast<int64_t>(parameters[i].tensor.nbytes()), {}, {}};
    for (const RankReport& report : reports) {
      (report.ready[i] ? parameter.ready_ranks : parameter.missing_ranks).push_back(report.rank);
      if (report.recorded.size() != parameters.size() || report.ready[i] == report.recorded[i]) continue;
      (report.ready[i] ? now_used : now_unused).push_back(report.rank);
    }
    if (now_used.empty() && now_unused.empty()) continue;
    fewer = fewer || !now_unused.empty();
    Verdict verdict;
    verdict.kind = "static_graph_changed";
    verdict.iteration = reports.front().round;
    verdict.ranks = now_unused.empty() ? now_used : now_unused;
    verdict.parameters.push_back(std::move(parameter));
    verdict.cause.kind = CauseKind::GraphChanged;
    const size_t dot = parameters[i].name.rfind('.');
    verdict.cause.module = dot == std::string::npos ? "" : parameters[i].name.substr(0, dot);
    set_place(verdict.cause, where);
    const RankReport& first = reports[static_cast<size_t>(verdict.ranks.front())];
    verdict.cause.text = fmt::format("{} in the first backward (at {}), {} in backward {} (at {})",
                                     now_unused.empty() ? "not used" : "used", first.recorded_at,
                                     now_unused.empty() ? "used" : "not used", first.round, first.backward);
    const auto cause = first.causes.find(i);
    if (cause != first.causes.end()) {
      verdict.cause.note = cause->second.text;
      verdict.cause.file = cause->second.file;
      verdict.cause.line = cause->second.line;
    }
    verdict.advice = advice_for(CauseKind::GraphChanged, false);
    verdict.message = paragraph(
        verdict, fmt::format("{} ({}) on {}", parameters[i].name, bytes_in_words(verdict.parameters.front().bytes),
                             ranks_in_words(verdict.ranks)));
    verdicts.push_back(std::move(verdict));
  }
  const char* const words_of_pytorch =
      fewer
          ? "Expected to have finished reduction in the prior iteration before starting a new one. This error "
            "indicates that your training graph has changed in this iteration, e.g., one parameter is used in first "
            "iteration, but then got unused in the second iteration. this is not compatible with static_graph set to "
            "True."
          : "Your training graph has changed in this iteration, e.g., one parameter is unused in first iteration, but "
            "then got used in the second iteration. this is not compatible with static_graph set to True.";
  const std::string message = compose_text(verdicts, reports.front().round, where, words_of_pytorch);
  return ReductionError(message, std::move(verdicts), where);
}

// One verdict for each group of parameters that are missing on the same ranks for the same cause.
std::vector<Verdict> group_by_cause(std::span<const RankReport> reports, std::span<const NamedParameter> parameters,
                                    const ErrorContext& context) {
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
    if (parameter.missing_ranks.empty() || !context.expected[i]) continue;
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
    verdict.iteration = reports.front().round;
    verdict.ranks = parameter.missing_ranks;
    verdict.advice = advice_for(cause.kind, !parameter.ready_ranks.empty());
    verdict.cause = std::move(cause);
    verdict.parameters.push_back(std::move(parameter));
    verdicts.push_back(std::move(verdict));
  }
  for (Verdict& verdict : verdicts) {
    const ParameterVerdict& first = verdict.parameters.front();
    std::string concerned =
        fmt::format("{}: never ready on {}", parameters_in_words(verdict), ranks_in_words(first.missing_ranks));
    if (!first.ready_ranks.empty()) concerned += fmt::format(" (ready on {})", ranks_in_words(first.ready_ranks));
    std::set<uint32_t> buckets;
    for (uint32_t i = 0; i < parameters.size(); ++i) {
      for (const ParameterVerdict& each : verdict.parameters) {
        if (each.name == parameters[i].name) buckets.insert(context.buckets[i]);
      }
    }
    concerned += fmt::format("; held up bucket{} {}", buckets.size() > 1 ? "s" : "", fmt::join(buckets, ", "));
    verdict.message = paragraph(verdict, concerned);
  }
  return verdicts;
}

}  // namespace

std::string encode(const RankReport& report) {
  std::string text =
      fmt::format("{}\n{}\n{}\n{}\n", report.rank, report.round, one_line(report.backward), one_line(report.failure));
  text += bits(report.ready) + "\n" + bits(report.recorded) + "\n" + report.recorded_at + "\n";
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
  report.ready = bits(next());
  report.recorded = bits(next());
  report.recorded_at = next();
  while (std::getline(in, line)) {
    const size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    report.causes.emplace(static_cast<uint32_t>(std::strtoul(line.c_str(), nullptr, 10)),
                          decode_cause(line.substr(space + 1)));
  }
  return report;
}

ReductionError compose_error(std::span<const RankReport> reports, std::span<const NamedParameter> parameters,
                             const ErrorContext& context) {
  const SourceLocation where = context.where;
  for (const RankReport& report : reports) {
    if (report.ready.size() != parameters.size()) {
      return ReductionError(fmt::format("rank {} reports {} parameters, expected {}", report.rank, report.ready.size(),
                                        parameters.size()),
                            {}, where);
    }
  }
  if (context.failed) return rank_failed(reports, where);
  if (!context.same_round) return backward_mismatch(reports, where);
  if (context.changed) return graph_changed(reports, parameters, where);

  std::vector<Verdict> verdicts = group_by_cause(reports, parameters, context);
  std::string words_of_pytorch =
      "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that "
      "your module has parameters that were not used in producing loss.";
  if (!context.find_unused_parameters) {
    words_of_pytorch +=
        " You can enable unused parameter detection by passing the keyword argument `find_unused_parameters=True`, and "
        "by making sure all `forward` function outputs participate in calculating loss.";
  }
  for (const RankReport& report : reports) {
    std::string names;
    std::string indices;
    for (uint32_t i = 0; i < parameters.size(); ++i) {
      if (report.ready[i] || !context.expected[i]) continue;
      names += (names.empty() ? "" : ", ") + parameters[i].name;
      indices += " " + std::to_string(i);
    }
    if (names.empty()) continue;
    words_of_pytorch += fmt::format("\nParameters which did not receive grad for rank {}: {}", report.rank, names);
    words_of_pytorch +=
        fmt::format("\nParameter indices which did not receive grad for rank {}:{}", report.rank, indices);
  }
  const std::string message = compose_text(verdicts, reports.front().round, where, words_of_pytorch);
  return ReductionError(message, std::move(verdicts), where);
}

}  // namespace brigade::dist
