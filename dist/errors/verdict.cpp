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

std::string with_advice(std::string text, const std::vector<Verdict>& verdicts) {
  for (size_t i = 0; i < verdicts.size() && i < kMostParagraphs; ++i) {
    const std::string& advice = verdicts[i].advice;
    if (verdicts[i].severity == Severity::Error && !advice.empty() && text.find(advice) == std::string::npos)
      text += kFix + advice;
  }
  return text;
}

std::string bytes_in_words(int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1024 * 1024));
}

// For causes where forward's record shows no cut, or there is no record; "" for any other cause.
static std::string advice_without_cut(CauseKind kind) {
  switch (kind) {
    case CauseKind::GradientNotReturned:
      return "return a gradient for that input from its backward (an undefined tensor says that there is none), freeze "
             "the parameter before wrapping, ";
    case CauseKind::OtherThread:
      return "run forward and backward on the thread that made the wrapper to learn the cause, ";
    case CauseKind::NotRecorded: return "switch diagnosis on (DDPOptions::diagnosis) to learn the cause, ";
    case CauseKind::Unknown: return "look at the hooks on its gradients and at what they change, ";
    default: return "";
  }
}

// For causes where a path to the loss was cut; "" for any other cause.
static std::string advice_for_cut(CauseKind kind, const std::string& tail) {
  switch (kind) {
    case CauseKind::Detached:
      return "remove the detach() if the gradient should flow; if it should not (a generator and a discriminator), say "
             "which parameters the backward has to reach (ddp.expect(optimizer)), wrap the two modules separately, freeze "
             "this one before wrapping, " +
             tail;
    case CauseKind::NoGrad:
      return "end the no_grad scope before this call, freeze the parameter before wrapping, " + tail;
    case CauseKind::NotDifferentiable:
      return "replace that operation by a differentiable one (softmax for argmax), use a straight-through estimate, " +
             tail;
    case CauseKind::ReadAsNumber:
      return "use the tensor itself in the loss; if it is a constant, register it as a buffer instead of a parameter";
    case CauseKind::Collective:
      return "no gradient comes back through a collective: put this rank's own result in its place (after all_gather, cat "
             "of the parts with it; after all_reduce, sum - own.detach() + own), or leave what is gathered out of the loss, " +
             tail;
    default: return "";
  }
}

std::string advice_for(CauseKind kind, bool some_ranks_only) {
  const std::string tail = "or wrap with find_unused_parameters=true (free in Brigade)";
  std::string advice;
  switch (kind) {
    case CauseKind::ModuleNotCalled:
    case CauseKind::NotUsed:
      advice = "use it in forward, remove it, freeze it before wrapping (requires_grad_(false)), " + tail;
      break;
    case CauseKind::OutputDropped:
      // data_ptr() leaves no record: kernels call it, too.
      advice =
          "add that output to the loss (the tensor itself, where data_ptr() reads its value), do not compute it, " +
          tail;
      break;
    case CauseKind::Detached:
    case CauseKind::NoGrad:
    case CauseKind::NotDifferentiable:
    case CauseKind::ReadAsNumber:
    case CauseKind::Collective: advice = advice_for_cut(kind, tail); break;
    case CauseKind::Frozen: advice = "freeze before wrapping, wrap again after freezing, " + tail; break;
    case CauseKind::LossNotConnected:
      advice = "compute the loss from the module's output on every rank (a zero loss: 0 * output.sum()), " + tail;
      break;
    case CauseKind::Replaced:
      advice =
          "wrap again after replacing a module or a parameter: the wrapper holds the old object (net->fc = "
          "net->replace_module(\"fc\", ...) changes handle and tree)";
      break;
    case CauseKind::GraphChanged:
      advice =
          "with static_graph every backward must use the same parameters: use the same branches in every iteration, or "
          "wrap with find_unused_parameters=true (free in Brigade) instead of static_graph=true";
      break;
    default:
      advice = advice_without_cut(kind);
      if (!advice.empty()) advice += tail;
      break;
  }
  if (some_ranks_only && kind == CauseKind::Frozen) {
    advice += ". Other ranks train it: freeze it on every rank or on none";
  } else if (some_ranks_only) {
    advice +=
        ". Other ranks used it: the ranks took different branches; with find_unused_parameters=true the missing "
        "gradient counts as zero in the mean";
  }
  return advice;
}

}  // namespace brigade::dist
