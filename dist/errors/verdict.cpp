// Names, texts and advice that verdicts share.
#include <brigade/dist/errors/verdict.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace brigade::dist {

const char* name(CauseKind kind) noexcept {
  constexpr const char* kNames[] = {"module_not_called",
                                    "not_used",
                                    "output_dropped",
                                    "detached",
                                    "no_grad",
                                    "not_differentiable",
                                    "read_as_number",
                                    "collective",
                                    "gradient_not_returned",
                                    "other_thread",
                                    "not_recorded",
                                    "frozen",
                                    "loss_not_connected",
                                    "replaced",
                                    "graph_changed",
                                    "thawed",
                                    "added",
                                    "outside_wrapper",
                                    "not_reduced",
                                    "set_by_hand",
                                    "edited_by_hand",
                                    "not_cleared",
                                    "no_backward",
                                    "reduced_twice",
                                    "not_held",
                                    "hook_differs",
                                    "options_differ",
                                    "steps_differ",
                                    "values_differ",
                                    "model_differs",
                                    "modes_differ",
                                    "collective_differs",
                                    "rank_gone",
                                    "rank_behind",
                                    "exception",
                                    "wrong_scale",
                                    "overflow",
                                    "non_finite",
                                    "norm_outlier",
                                    "uneven_batches",
                                    "same_batches",
                                    "slow",
                                    "wasteful",
                                    "unknown"};
  static_assert(std::size(kNames) == static_cast<size_t>(CauseKind::Unknown) + 1);
  return kNames[static_cast<int>(kind)];
}

const char* name(Severity severity) noexcept {
  constexpr const char* kNames[] = {"error", "warning", "note"};
  return kNames[static_cast<int>(severity)];
}

std::string names_in_words(const std::vector<ParameterVerdict>& parameters, size_t most) {
  std::string names;
  for (size_t i = 0; i < parameters.size() && i < most; ++i)
    names += (i > 0 ? ", " : "") + parameters[i].name;
  if (parameters.size() > most) names += fmt::format(" and {} more", parameters.size() - most);
  return names;
}

ParameterVerdict about(const NamedParameter& parameter, std::vector<int> ready_ranks, std::vector<int> missing_ranks) {
  return {parameter.name, static_cast<int64_t>(parameter.tensor.nbytes()), std::move(ready_ranks),
          std::move(missing_ranks)};
}

std::string module_of(const std::string& parameter) {
  const size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? "" : parameter.substr(0, dot);
}

std::string ranks_in_words(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + list_of(ranks);
}

std::string list_of(const std::vector<int>& ranks) {
  constexpr size_t kMostOneByOne = 8;
  std::vector<std::string> parts;
  for (size_t i = 0, end = 0; i < ranks.size(); i = end) {
    end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1)
      ++end;
    if (ranks.size() <= kMostOneByOne || end - i < 3) end = i + 1;
    parts.push_back(end - i == 1 ? std::to_string(ranks[i]) : fmt::format("{} to {}", ranks[i], ranks[end - 1]));
  }
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

std::string first_of(std::span<const std::string> parts, size_t most, std::string_view separator) {
  const size_t shown = std::min(parts.size(), most);
  std::string text = fmt::format("{}", fmt::join(parts.first(shown), separator));
  if (shown < parts.size()) text += fmt::format("{}and {} more", separator, parts.size() - shown);
  return text;
}

Verdict new_verdict(const char* kind, Severity severity, CauseKind cause, Place place) {
  Verdict verdict;
  verdict.kind = kind;
  verdict.severity = severity;
  verdict.cause.kind = cause;
  verdict.cause.place = std::move(place);
  return verdict;
}

// Ends the text with a period, if nothing ends it yet.
static std::string sentence(std::string text) {
  if (!text.empty() && std::string_view(".!?").find(text.back()) == std::string_view::npos) text += '.';
  return text;
}

void set_message(Verdict& verdict, const std::string& what) {
  const std::string& note = verdict.cause.note;
  const std::string why = verdict.cause.text + (note.empty() ? "" : fmt::format(" ({})", note));
  verdict.message = with_short_places(sentence(what) + (why.empty() ? "" : "\nwhy: " + sentence(why)));
}

std::string headline(const Verdict& verdict) {
  const std::string line = verdict.message.substr(0, verdict.message.find('\n'));
  return line.ends_with('.') ? line.substr(0, line.size() - 1) : line;
}

std::string advice_in_words(const Verdict& verdict) {
  // What lab/commands/explain_kinds.cpp explains.
  static constexpr std::string_view kExplained[] = {"backward_mismatch",
                                                    "batch_skipped",
                                                    "buffers_differ",
                                                    "buffers_written",
                                                    "collective_mismatch",
                                                    "collective_timeout",
                                                    "edited_before_reduction",
                                                    "gradient_outlier",
                                                    "gradients_edited",
                                                    "hook_result",
                                                    "non_finite_gradients",
                                                    "optimizers_differ",
                                                    "parameters_differ",
                                                    "parameters_written",
                                                    "rank_lost",
                                                    "same_batches",
                                                    "uneven_batches",
                                                    "uneven_factors",
                                                    "uneven_micro_batches",
                                                    "unmanaged_parameters",
                                                    "unreached_module",
                                                    "unreduced_gradients",
                                                    "unused_parameters"};
  const bool has_more = std::ranges::find(kExplained, verdict.kind) != std::end(kExplained);
  return sentence(verdict.advice) + (has_more ? fmt::format(" (More: brigade explain {})", verdict.kind) : "");
}

std::string in_words(std::span<const Verdict> verdicts) {
  std::vector<std::string> paragraphs;
  for (size_t i = 0; i < verdicts.size(); ++i) {
    const bool is_shared = i + 1 < std::min(verdicts.size(), kMostParagraphs) &&
                           verdicts[i].kind == verdicts[i + 1].kind && verdicts[i].advice == verdicts[i + 1].advice;
    paragraphs.push_back(verdicts[i].message +
                         (is_shared || verdicts[i].advice.empty() ? "" : kDo + advice_in_words(verdicts[i])));
  }
  return first_of(paragraphs, kMostParagraphs, "\n\n");
}

std::string by_rank_in_words(std::span<const std::string> by_rank) {
  std::vector<std::pair<std::string, std::vector<int>>> alike;
  for (size_t r = 0; r < by_rank.size(); ++r) {
    auto known = std::ranges::find(alike, by_rank[r], [](const auto& each) { return each.first; });
    if (known == alike.end()) known = alike.insert(alike.end(), {by_rank[r], {}});
    known->second.push_back(static_cast<int>(r));
  }
  std::vector<std::string> parts;
  for (const auto& [said, ranks] : alike) {
    const bool has = ranks.size() > 1 && said.starts_with("has ");
    parts.push_back(ranks_in_words(ranks) + (has ? " have " + said.substr(4) : " " + said));
  }
  return first_of(parts, 8, ", ");
}

std::string parameters_in_words(const std::vector<ParameterVerdict>& parameters) {
  int64_t bytes = 0;
  for (const ParameterVerdict& parameter : parameters)
    bytes += parameter.bytes;
  return fmt::format("{} ({})", names_in_words(parameters), bytes_in_words(bytes));
}

std::string bytes_in_words(int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1024 * 1024));
}

std::string advice_for(CauseKind kind, bool some_ranks_only, bool by_fabric) {
  const std::string flag =
      by_fabric ? ", or set strategy = \"ddp_find_unused_parameters_true\"" : ", or set find_unused_parameters = true";
  if (some_ranks_only && kind == CauseKind::Frozen) return "freeze it on every rank or on none, before wrapping";
  if (some_ranks_only && (kind == CauseKind::ModuleNotCalled || kind == CauseKind::NotUsed))
    return "take the same branch on every rank" + flag;
  switch (kind) {
    case CauseKind::ModuleNotCalled: return "call it in forward, remove it" + flag;
    case CauseKind::NotUsed: return "use it in forward, remove it" + flag;
    case CauseKind::OutputDropped: return "add it to the loss" + flag;
    case CauseKind::Detached:
      return fmt::format("remove the detach(), or call {}(optimizer) before this backward",
                         by_fabric ? "fabric.toggle_optimizer" : "ddp.expect");
    case CauseKind::NoGrad: return "end the no_grad scope before it, or freeze it before wrapping";
    case CauseKind::NotDifferentiable:
      return "use a differentiable operation (softmax for argmax) or a straight-through estimate";
    case CauseKind::ReadAsNumber: return "use the tensor itself in the loss, or register a constant as a buffer";
    case CauseKind::Collective:
      return "put this rank's own result in place of its part of what is gathered, or leave that out of the loss";
    case CauseKind::Frozen: return "unfreeze it (a copied handle is the same module), or freeze it before wrapping";
    case CauseKind::LossNotConnected:
      return "compute the loss from the module's output on every rank (a zero loss: 0 * output.sum())";
    case CauseKind::Replaced: return "wrap again after replacing a module or a parameter";
    case CauseKind::GraphChanged:
      return "take the same branches in every iteration, or use find_unused_parameters in place of static_graph";
    case CauseKind::GradientNotReturned: return "return one for that input, or freeze it before wrapping";
    case CauseKind::OtherThread:
      return "run forward and backward on the thread that made the wrapper to learn the cause" + flag;
    case CauseKind::NotRecorded: return "switch diagnosis on (DDPOptions::diagnosis) to learn the cause" + flag;
    default: return "look at the hooks on its gradients and at what they change" + flag;
  }
}

}  // namespace brigade::dist
