// Names, words and advice that verdicts share.
#include <brigade/dist/diagnosis/verdict.h>

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace brigade::dist {

const char* name(CauseKind kind) noexcept {
  constexpr const char* kNames[] = {
      "module_not_called",  "not_used",       "output_dropped", "detached",           "no_grad",
      "not_differentiable", "read_as_number", "frozen",         "loss_not_connected", "replaced",
      "graph_changed",      "thawed",         "added",          "outside_wrapper",    "not_reduced",
      "set_by_hand",        "edited_by_hand", "not_cleared",    "hook_differs",       "options_differ",
      "steps_differ",       "values_differ",  "model_differs",  "collective_differs", "rank_gone",
      "rank_behind",        "exception",      "wrong_scale",    "overflow",           "non_finite",
      "norm_outlier",       "uneven_batches", "slow",           "wasteful",           "unknown"};
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
  std::string text;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

std::string bytes_in_words(int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1024 * 1024));
}

std::string advice_for(CauseKind kind, bool some_ranks_only) {
  const std::string tail = "or wrap with find_unused_parameters=true (free in Brigade)";
  std::string advice;
  switch (kind) {
    case CauseKind::ModuleNotCalled:
    case CauseKind::NotUsed:
      advice = "use it in forward, remove it, freeze it before wrapping (requires_grad_(false)), " + tail;
      break;
    case CauseKind::OutputDropped: advice = "add that output to the loss, do not compute it, " + tail; break;
    case CauseKind::Detached:
      advice =
          "remove the detach() if the gradient should flow; if it should not (a generator and a discriminator), say "
          "which parameters the backward has to reach (ddp.expect(optimizer)), wrap the two modules separately, freeze "
          "this one before wrapping, " +
          tail;
      break;
    case CauseKind::NoGrad:
      advice = "end the no_grad scope before this call, freeze the parameter before wrapping, " + tail;
      break;
    case CauseKind::NotDifferentiable:
      advice =
          "replace that operation by a differentiable one (softmax for argmax), use a straight-through estimate, " +
          tail;
      break;
    case CauseKind::ReadAsNumber:
      advice = "use the tensor itself in the loss; if it is a constant, register it as a buffer instead of a parameter";
      break;
    case CauseKind::Frozen: advice = "freeze before wrapping, wrap again after freezing, " + tail; break;
    case CauseKind::LossNotConnected:
      advice = "compute the loss from the module's output on every rank (a zero loss: 0 * output.sum()), " + tail;
      break;
    case CauseKind::Replaced:
      advice = "wrap again after replacing a module or a parameter: the wrapper holds the old object";
      break;
    case CauseKind::GraphChanged:
      advice =
          "with static_graph every backward must use the same parameters: use the same branches in every iteration, or "
          "wrap with find_unused_parameters=true (free in Brigade) instead of static_graph=true";
      break;
    case CauseKind::Unknown: advice = "switch diagnosis on (DDPOptions::diagnosis) to learn the cause, " + tail; break;
    default: break;
  }
  if (some_ranks_only) {
    advice +=
        ". Other ranks used it: the ranks took different branches; with find_unused_parameters=true the missing "
        "gradient counts as zero in the mean";
  }
  return advice;
}

}  // namespace brigade::dist
