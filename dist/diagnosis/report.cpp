// Composes the error of all ranks: the kind of error first, then its verdicts, then PyTorch's message.
#include <brigade/dist/diagnosis/report.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace brigade::dist {
namespace {

constexpr const char* kAfterwards =
    "The gradients of this backward were cleared on every rank before any optimizer step; training can go on without "
    "wrapping again.";

// Modules that the same ranks did not call are one paragraph.
std::vector<Verdict> in_paragraphs(std::span<const Verdict> verdicts) {
  std::vector<Verdict> paragraphs;
  std::map<std::vector<int>, size_t> not_called;
  for (const Verdict& verdict : verdicts) {
    const bool is_first = verdict.cause.kind != CauseKind::ModuleNotCalled ||
                          not_called.try_emplace(verdict.ranks, paragraphs.size()).second;
    if (is_first) {
      paragraphs.push_back(verdict);
      continue;
    }
    Verdict& together = paragraphs[not_called[verdict.ranks]];
    together.parameters.insert(together.parameters.end(), verdict.parameters.begin(), verdict.parameters.end());
    together.cause.text = "their modules were not called in this forward";
  }
  return paragraphs;
}

// "No gradient: b.weight (64 B), on rank 1, in backward 3 of DDP(Net) at train.cpp:30"
std::string first_line(const char* what, const Verdict& verdict, const ErrorContext& context) {
  return fmt::format("{}: {}, on {}, in backward {}{} at {}", what, parameters_in_words(verdict.parameters),
                     ranks_in_words(verdict.ranks), verdict.iteration,
                     context.wrapper.empty() ? "" : " of " + context.wrapper, to_string(context.where));
}

// What Brigade knows, and the first sentence of what PyTorch says in this case, for users who search for it; all of that
// with BRIGADE_VERBOSE=1.
std::string compose_text(const char* what, std::span<const Verdict> verdicts, const ErrorContext& context,
                         const std::string& words_of_pytorch) {
  std::vector<Verdict> paragraphs = in_paragraphs(verdicts);
  for (Verdict& paragraph : paragraphs)
    set_message(paragraph, first_line(what, paragraph, context));
  const std::string text = in_words(paragraphs) + "\n\n";
  const char* const verbose = std::getenv("BRIGADE_VERBOSE");
  if (verbose && std::string_view(verbose) == "1") return text + kAfterwards + "\n\nPyTorch says: " + words_of_pytorch;
  const size_t end = std::min(words_of_pytorch.find(", e.g."), words_of_pytorch.find('.') + 1);
  return fmt::format("{}PyTorch says: \"{}\"", text, words_of_pytorch.substr(0, end));
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

ReductionError compose_error(std::span<const RankReport> reports, std::span<const NamedParameter> parameters,
                             const ErrorContext& context) {
  const SourceLocation where = context.where;
  for (const RankReport& report : reports) {
    if (report.ready.size() == parameters.size()) continue;
    return ReductionError(
        fmt::format("rank {} reports {} parameters, expected {}", report.rank, report.ready.size(), parameters.size()),
        {}, where);
  }
  const auto alone = [&](const Verdict& verdict) {
    return ReductionError(in_words(verdict) + context.legend, {verdict}, where);
  };
  if (context.failed) return alone(rank_failed(reports));
  if (!context.same_round) return alone(backward_mismatch(reports, parameters));
  std::vector<Verdict> verdicts = context.changed ? static_graph_changed(reports, parameters, where)
                                                  : unused_parameters(reports, parameters, context);
  const char* const what = context.changed ? "Graph changed under static_graph" : "No gradient";
  const std::string words =
      context.changed ? words_on_static_graph(reports) : words_on_unused_parameters(reports, parameters, context);
  for (Verdict& verdict : verdicts)
    set_message(verdict, first_line(what, verdict, context));
  const std::string message = compose_text(what, verdicts, context, words) + context.legend;
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
  Verdict verdict = new_verdict(kind, severity, cause, moment.where);
  verdict.iteration = moment.iteration;
  return verdict;
}

}  // namespace brigade::dist
