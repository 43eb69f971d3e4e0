// Composes the error of all ranks: the kind of error first, then its verdicts, then PyTorch's message.
#include <brigade/dist/diagnosis/report.h>

#include <fmt/format.h>

#include <algorithm>

namespace brigade::dist {

namespace {

constexpr const char* kAfterwards =
    "The gradients of this backward were cleared on every rank before any optimizer step; training can go on without "
    "wrapping again.";

// The text of an error: what Brigade knows, followed by PyTorch's message for this case, for users who search for it.
std::string compose_text(std::span<const Verdict> verdicts, uint64_t round, SourceLocation where,
                         const std::string& words_of_pytorch) {
  std::vector<std::string> paragraphs;
  for (const Verdict& verdict : verdicts)
    paragraphs.push_back(verdict.message);
  const std::string text = first_of(paragraphs, kMostParagraphs, "\n\n") + "\n\n";
  return text + fmt::format("Found at the end of backward number {} ({}). {}\n\nIn the words of PyTorch: {}", round,
                            to_string(where), kAfterwards, words_of_pytorch);
}

// Whether this rank's first backward used a parameter that it does not use now.
bool uses_less(const RankReport& report) {
  for (size_t i = 0; i < report.recorded.size(); ++i) {
    if (report.recorded[i] && !report.ready[i]) return true;
  }
  return false;
}
const char* words_on_static_graph(std::span<const RankReport> reports) {
  return std::any_of(reports.begin(), reports.end(), &uses_less)
             ? "Expected to have finished reduction in the prior iteration before starting a new one. This error "
               "indicates that your training graph has changed in this iteration, e.g., one parameter is used in first "
               "iteration, but then got unused in the second iteration. this is not compatible with static_graph set "
               "to True."
             : "Your training graph has changed in this iteration, e.g., one parameter is unused in first iteration, "
               "but then got used in the second iteration. this is not compatible with static_graph set to True.";
}

std::string words_on_unused_parameters(std::span<const RankReport> reports, std::span<const NamedParameter> parameters,
                                       const ErrorContext& context) {
  std::string words_of_pytorch =
      "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that "
      "your module has parameters that were not used in producing loss.";
  if (!context.find_unused_parameters) {
    words_of_pytorch +=
        " You can enable unused parameter detection by passing the keyword argument `find_unused_parameters=True`, and "
        "by making sure all `forward` function outputs participate in calculating loss.";
  }
  for (const RankReport& report : reports) {
    constexpr size_t kMost = 8;
    std::vector<std::string> names;
    std::vector<std::string> indices;
    for (uint32_t i = 0; i < parameters.size(); ++i) {
      if (report.ready[i] || !context.expected[i]) continue;
      names.push_back(parameters[i].name);
      indices.push_back(std::to_string(i));
    }
    if (names.empty()) continue;
    words_of_pytorch += fmt::format("\nParameters which did not receive grad for rank {}: {}", report.rank,
                                    first_of(names, kMost, ", "));
    words_of_pytorch += fmt::format("\nParameter indices which did not receive grad for rank {}: {}", report.rank,
                                    first_of(indices, kMost, " "));
  }
  return words_of_pytorch;
}

}  // namespace

std::string paragraph(const Verdict& verdict, const std::string& parameters) {
  std::string text = "cause:      " + (verdict.cause.text.empty() ? "not known" : verdict.cause.text);
  if (!verdict.cause.note.empty()) text += "\nnote:       " + verdict.cause.note;
  return text + "\nparameters: " + parameters + "\nfix:        " + verdict.advice;
}

ReductionError compose_error(std::span<const RankReport> reports, std::span<const NamedParameter> parameters,
                             const ErrorContext& context) {
  const SourceLocation where = context.where;
  const uint64_t round = reports.front().round;
  for (const RankReport& report : reports) {
    if (report.ready.size() == parameters.size()) continue;
    return ReductionError(
        fmt::format("rank {} reports {} parameters, expected {}", report.rank, report.ready.size(), parameters.size()),
        {}, where);
  }
  const std::string& legend = context.legend;
  if (context.failed) {
    const Verdict verdict = rank_failed(reports);
    return ReductionError(verdict.message + ". " + kAfterwards + legend, {verdict}, where);
  }
  if (!context.same_round) {
    const Verdict verdict = backward_mismatch(reports, parameters);
    return ReductionError(verdict.message + ". " + verdict.advice + ". " + kAfterwards + legend, {verdict}, where);
  }
  std::vector<Verdict> verdicts;
  std::string words;
  if (context.changed) {
    verdicts = static_graph_changed(reports, parameters, where);
    words = words_on_static_graph(reports);
  } else {
    verdicts = unused_parameters(reports, parameters, context);
    words = words_on_unused_parameters(reports, parameters, context);
  }
  const std::string message = compose_text(verdicts, round, where, words) + legend;
  return ReductionError(message, std::move(verdicts), where);
}

// --- Merges equal verdicts of several ranks into one that lists all of these ranks.

namespace {

void join(std::vector<int>& into, const std::vector<int>& ranks) {
  into.insert(into.end(), ranks.begin(), ranks.end());
  std::sort(into.begin(), into.end());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

}  // namespace

std::vector<Verdict> merge(std::span<const std::vector<Verdict>> by_rank) {
  std::vector<Verdict> merged;
  for (const std::vector<Verdict>& verdicts : by_rank) {
    for (const Verdict& verdict : verdicts) {
      const auto same = std::find_if(merged.begin(), merged.end(), [&](const Verdict& known) {
        return known.kind == verdict.kind && known.cause.same_as(verdict.cause) &&
               known.parameters.size() == verdict.parameters.size() &&
               std::equal(known.parameters.begin(), known.parameters.end(), verdict.parameters.begin(),
                          [](const auto& a, const auto& b) { return a.name == b.name; });
      });
      if (same == merged.end()) {
        merged.push_back(verdict);
        continue;
      }
      join(same->ranks, verdict.ranks);
      for (size_t i = 0; i < verdict.parameters.size(); ++i) {
        join(same->parameters[i].ready_ranks, verdict.parameters[i].ready_ranks);
        join(same->parameters[i].missing_ranks, verdict.parameters[i].missing_ranks);
      }
    }
  }
  return merged;
}

// --- The fields that all verdicts on a backward share.

Verdict verdict_at(const Moment& moment, const char* kind, Severity severity, CauseKind cause) {
  Verdict verdict;
  verdict.kind = kind;
  verdict.severity = severity;
  verdict.iteration = moment.iteration;
  verdict.cause.kind = cause;
  verdict.cause.place = moment.where;
  return verdict;
}

}  // namespace brigade::dist
