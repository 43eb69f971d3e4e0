// Follows the tape from a parameter to the point where its path to the loss ends.
#include <brigade/dist/diagnosis/cause.h>

#include <brigade/autograd/detail/findings.h>
#include <brigade/autograd/meta.h>
#include <brigade/autograd/tape_query.h>
#include <brigade/core/place.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_set>

namespace brigade::dist {
namespace {

using autograd::BackwardOnTape;
using autograd::Cut;
using autograd::Fate;
using autograd::Tape;

std::string module_in_words(const Tape& tape, const Tape::Record& record) {
  const autograd::ModuleCall* call = autograd::module_of(tape, record);
  if (!call) return "";
  return call->path->empty() ? fmt::format(" in {}", call->type)
                             : fmt::format(" in `{}` ({})", *call->path, call->type);
}

CauseKind kind_of(Cut cut) {
  switch (cut) {
    case Cut::Detach: return CauseKind::Detached;
    case Cut::NoGrad: return CauseKind::NoGrad;
    case Cut::NotDifferentiable: return CauseKind::NotDifferentiable;
    case Cut::ReadAsNumber: return CauseKind::ReadAsNumber;
    case Cut::Collective: return CauseKind::Collective;
    case Cut::None: break;
  }
  return CauseKind::Unknown;
}

void describe_cut(Cause& cause, const Tape& tape, const Tape::Record& record) {
  cause.kind = kind_of(record.cut);
  cause.op = record.op;
  const bool has_guard = record.cut == Cut::NoGrad && !is_in_standard_library(record.cut_at);
  cause.place = has_guard ? record.cut_at : record.where;
  const std::string module = module_in_words(tape, record);
  const std::string at = to_string(record.where);
  switch (cause.kind) {
    case CauseKind::Detached:
      cause.text = fmt::format("detach() at {}{} cut the path from the loss", at, module);
      break;
    case CauseKind::NoGrad:
      cause.text = has_guard ? fmt::format("used under no_grad, opened at {}", to_string(record.cut_at))
                             : fmt::format("used under no_grad, by {} at {}{}", record.op, at, module);
      if (has_guard) cause.note = fmt::format("first operation: {} at {}{}", record.op, at, module);
      break;
    case CauseKind::NotDifferentiable:
      cause.text = fmt::format("{}{} at {}{} has no derivative",
                               autograd::has_live_results(tape, record) ? "a result of " : "", record.op, at, module);
      break;
    case CauseKind::Collective:
      cause.text = fmt::format("its values reach the loss only through {} at {}{}, which sends no gradient back",
                               record.op, at, module);
      break;
    default:
      cause.text = fmt::format("its value was read as a number at {}{}, which leaves the graph", at, module);
      break;
  }
}

// A person has to choose: some of the cuts may be meant (a target that gets no gradient).
void note_other_cuts(Cause& cause, const Fate& fate) {
  std::set<std::string> lines;
  for (const Tape::Record& each : fate.other_cuts)
    lines.insert(fmt::format("{} at {}", each.op, to_string(each.where)));
  if (!lines.empty())
    cause.note += fmt::format("{}other paths from the loss are cut by {}; one that is whole is enough",
                              cause.note.empty() ? "" : "; ", fmt::join(lines, ", "));
}

// The path of a called module inside the wrapped one; null if it is not part of the wrapped module. Modules of other
// trees may have the same paths.
const std::string* path_in(const WrappedModule& wrapped, const autograd::ModuleCall& call) {
  if (wrapped.paths.empty()) return call.path;
  const auto found = wrapped.paths.find(call.module);
  return found == wrapped.paths.end() ? nullptr : &found->second;
}

// A call of the module at `path`, or of a module inside it, that belongs to the backward; null if there is none.
const autograd::ModuleCall* call_of(const BackwardOnTape& backward, const std::string& path, const Fate& fate,
                                    const WrappedModule& wrapped) {
  return backward.find_call(fate, [&, inside = path + "."](const autograd::ModuleCall& call) {
    const std::string* const called = path_in(wrapped, call);
    return called && (*called == path || path.empty() || called->starts_with(inside));
  });
}

// A call of the stand-in for the module at `path`: of the same type, registered nowhere, called by a module that
// contains `path`, and made after every parameter of the wrapped module. (A layer that was never registered is made
// along with the others.)
const autograd::ModuleCall* stand_in_call(const BackwardOnTape& backward, const Tape& tape, const std::string& path,
                                          std::string_view type, uint64_t newest, const Fate& fate) {
  const auto holds = [&](const std::string& caller) {
    return caller.empty() || (path.starts_with(caller) && path.substr(caller.size()).starts_with('.'));
  };
  return backward.find_call(fate, [&](const autograd::ModuleCall& call) {
    return call.unregistered > newest && call.type == type && holds(*tape.call(call.parent).path);
  });
}

// The module whose call would use the parameter: parameter lists are not called, the module that holds them is.
std::string called_for(const std::string& module, std::string_view type) {
  if (type != "ParameterList" && type != "ParameterDict") return module;
  const size_t dot = module.rfind('.');
  return dot == module.npos ? "" : module.substr(0, dot);
}

// Describes a parameter of cause.module that no operation used in this backward, which was called at `backward`.
void describe_not_used(Cause& cause, const BackwardOnTape& on_tape, const Tape& tape, const Fate& fate,
                       SourceLocation backward, const char* type, const WrappedModule& wrapped) {
  const std::string called = called_for(cause.module, type ? type : "");
  const std::string module = called.empty() ? "the root module" : "module `" + called + "`";
  if (!wrapped.reached_any) {
    cause.kind = CauseKind::LossNotConnected;
    cause.place = backward;
    cause.text =
        fmt::format("the loss of the backward at {} does not depend on the module at all", to_string(backward));
  } else if (const auto* call = call_of(on_tape, called, fate, wrapped);
             call && fate.other_use && fate.other_use->cut == Cut::ReadAsNumber) {
    return describe_cut(cause, tape, *fate.other_use);
  } else if (call) {
    cause.kind = CauseKind::NotUsed;
    cause.place = call->where;
    cause.text =
        fmt::format("{} was called at {}, but no operation used the parameter", module, to_string(call->where));
  } else {
    cause.kind = CauseKind::ModuleNotCalled;
    cause.place = backward;
    cause.text = module + " was not called in this forward";
    if (const auto* other = stand_in_call(on_tape, tape, cause.module, type, wrapped.newest, fate)) {
      cause.kind = CauseKind::Replaced;
      cause.place = other->where;
      cause.text = fmt::format(
          "{} was not called; a {} that is registered nowhere was, at {}: its handle was assigned again, and the module "
          "tree and the wrapper hold the old object",
          module, other->type, to_string(other->where));
    }
  }
  if (fate.other_use)
    cause.note = fmt::format("last taken by {} at {}", fate.other_use->op, to_string(fate.other_use->where));
}

// Describes a parameter that forward used through a tensor detached before there was a tape. Returns false if it did
// not.
bool describe_early_detach(Cause& cause, const BackwardOnTape& backward, uint64_t id) {
  for (const autograd::detail::EarlyDetach& each : autograd::detail::early_detaches(id)) {
    const Fate fate = backward.trace(each.result);
    if (fate.kind != Fate::Kind::Reached && !fate.root_depends) continue;
    cause.kind = CauseKind::Detached;
    cause.op = "detach";
    cause.place = each.where;
    cause.text =
        fmt::format("detach() at {}, before the module was wrapped, cut the path from the loss", to_string(each.where));
    return true;
  }
  return false;
}

// Adds where one of the results was read as a number: for a log, or for the loss, which the tape cannot see.
void note_reading(Cause& cause, const Tape& tape, const Tape::Record& record) {
  const auto results = tape.outputs(record);
  for (const Tape::Record& reader : tape.records()) {
    if (reader.cut != Cut::ReadAsNumber || reader.first_id <= record.first_id) continue;
    const auto inputs = tape.inputs(reader);
    if (std::ranges::find_first_of(inputs, results) == inputs.end()) continue;
    cause.note = fmt::format("its value was read as a number, by {}() at {}", reader.op, to_string(reader.where));
    return;
  }
}

// Describes a tensor that no root depends on, by the last live result on its way.
void describe_dropped(Cause& cause, const Tape& tape, const Tape::Record& record) {
  cause.kind = CauseKind::OutputDropped;
  cause.op = record.op;
  cause.place = record.where;
  cause.text = fmt::format("the result of {} at {}{} is not part of the loss", record.op, to_string(record.where),
                           module_in_words(tape, record));
  note_reading(cause, tape, record);
}

// Describes a path that exists, but on which a backward returned no gradient. Returns false if none did so.
bool describe_stopped(Cause& cause, const Tape& tape, uint64_t id) {
  const autograd::detail::StoppedGradients& stopped = autograd::detail::stopped_gradients();
  const std::vector<uint64_t> live = autograd::live_nodes(tape, id);
  const auto at = std::find_if(stopped.all.begin(), stopped.all.end(), [&](const auto& each) {
    return each.leaf == id || std::binary_search(live.begin(), live.end(), each.producer);
  });
  if (at == stopped.all.end()) return false;
  const auto inside = std::find_if(stopped.in_segments.begin(), stopped.in_segments.end(), [&](const auto& each) {
    return each.sequence == at->sequence && each.input == at->input;
  });
  const std::string where = to_string(at->where);
  if (inside == stopped.in_segments.end()) {
    cause.kind = CauseKind::GradientNotReturned;
    cause.op = at->op;
    cause.place = at->where;
    cause.text = fmt::format("the backward of {}, called at {}, returned no gradient for input {} (counted from 1)",
                             at->op, where, at->input + 1);
    return true;
  }
  switch (inside->fate.kind) {
    case Fate::Kind::Cut: describe_cut(cause, *inside->tape, *inside->fate.record); break;
    case Fate::Kind::Dropped: describe_dropped(cause, *inside->tape, *inside->fate.record); break;
    case Fate::Kind::NotUsed:
      cause.kind = CauseKind::NotUsed;
      cause.op = at->op;
      cause.place = at->where;
      cause.text =
          fmt::format("it goes into the {} at {}, whose segment did not use it when it ran again", at->op, where);
      break;
    case Fate::Kind::Reached:
      if (!describe_stopped(cause, *inside->tape, inside->id)) return false;
      break;
  }
  cause.note += fmt::format("{}inside the {} at {}", cause.note.empty() ? "" : "; ", at->op, where);
  return true;
}

// A node behind the roots that was recorded at a line unknown to the tape, or null.
const autograd::Node* recorded_elsewhere(const Tape& tape, std::span<const Tensor> roots) {
  if (roots.empty()) return nullptr;
  const auto line_of = [](const SourceLocation& where) {
    return std::pair(std::string_view(where.file_name()), where.line());
  };
  std::set<std::pair<std::string_view, uint32_t>> lines;
  for (const Tape::Record& record : tape.records())
    lines.insert(line_of(record.where));
  std::vector<const autograd::Node*> open;
  std::unordered_set<const autograd::Node*> seen;
  for (const Tensor& root : roots)
    open.push_back(autograd::grad_fn(root));
  while (!open.empty()) {
    const autograd::Node* node = open.back();
    open.pop_back();
    if (!node || !seen.insert(node).second) continue;
    if (node->where.line() != 0 && !lines.contains(line_of(node->where))) return node;
    for (const autograd::Edge& edge : node->edges)
      open.push_back(edge.node.get());
  }
  return nullptr;
}

// The thread that runs backward has no record of forward, or not a complete one.
void describe_not_recorded(Cause& cause, bool diagnosis, const autograd::Node* elsewhere) {
  cause.kind = diagnosis ? CauseKind::OtherThread : CauseKind::NotRecorded;
  if (!diagnosis) {
    cause.text = "no record of this forward: diagnosis is off";
  } else if (elsewhere) {
    cause.op = elsewhere->op;
    cause.place = elsewhere->where;
    cause.text = fmt::format(
        "not known: {} at {} belongs to this loss, and ran where this thread keeps no record (on another thread, or "
        "before the wrapper was made)",
        elsewhere->op, to_string(elsewhere->where));
  } else {
    cause.text = "not known: backward runs on another thread than the one that made the wrapper and keeps the record";
  }
}

std::optional<Cause> frozen(const NamedParameter& parameter) {
  if (parameter.tensor.requires_grad()) return std::nullopt;
  Cause cause;
  cause.module = module_of(parameter.name);
  const autograd::AutogradMeta* known = autograd::meta(parameter.tensor);
  cause.kind = CauseKind::Frozen;
  cause.text = "frozen after wrapping";
  if (known && known->requires_grad_set_at.line() != 0) {
    cause.place = known->requires_grad_set_at;
    cause.text += ", set at " + to_string(known->requires_grad_set_at);
  }
  return cause;
}

}  // namespace

CauseSearch::CauseSearch(const TracedBackward& backward, const WrappedModule& wrapped)
    : backward_(backward), wrapped_(wrapped) {
  const Tape* const tape = Tape::current();
  if (!tape) return;
  BackwardOnTape::IsMeant is_own;
  if (!wrapped.paths.empty())
    is_own = [&wrapped](const autograd::ModuleCall& call) { return wrapped.paths.contains(call.module); };
  if (backward.has_ended()) {
    on_tape_.emplace(*tape, backward.number(), std::move(is_own), wrapped.newest);
  } else {
    on_tape_.emplace(*tape, backward.roots(), std::move(is_own), wrapped.newest);
  }
}

Cause CauseSearch::operator()(const NamedParameter& parameter) const {
  if (std::optional<Cause> cause = frozen(parameter)) return *std::move(cause);
  if (on_tape_) return cause_of(parameter, *Tape::current());
  Cause cause;
  cause.module = module_of(parameter.name);
  describe_not_recorded(cause, wrapped_.diagnosis, nullptr);
  return cause;
}

Place CauseSearch::called_at(const NamedParameter& parameter) const {
  const std::string module = called_for(module_of(parameter.name), parameter.module_type ? parameter.module_type : "");
  const autograd::ModuleCall* const call = on_tape_ ? call_of(*on_tape_, module, {}, wrapped_) : nullptr;
  return call ? Place(call->where) : Place();
}

Cause CauseSearch::cause_of(const NamedParameter& parameter, const Tape& tape) const {
  const uint64_t id = parameter.tensor.id();
  Cause cause;
  cause.module = module_of(parameter.name);
  const Fate fate = on_tape_->trace(id);
  if (fate.kind == Fate::Kind::NotUsed || fate.kind == Fate::Kind::Dropped) {
    if (const autograd::Node* elsewhere = recorded_elsewhere(tape, backward_.roots())) {
      describe_not_recorded(cause, wrapped_.diagnosis, elsewhere);
      return cause;
    }
  }
  switch (fate.kind) {
    case Fate::Kind::Cut:
      describe_cut(cause, tape, *fate.record);
      note_other_cuts(cause, fate);
      break;
    case Fate::Kind::Dropped: describe_dropped(cause, tape, *fate.record); break;
    case Fate::Kind::NotUsed:
      if (!describe_early_detach(cause, *on_tape_, id))
        describe_not_used(cause, *on_tape_, tape, fate, backward_.where(), parameter.module_type, wrapped_);
      break;
    case Fate::Kind::Reached:
      if (autograd::detail::stopped_gradients().backward == backward_.number() && describe_stopped(cause, tape, id))
        break;
      cause.text =
          "a path from the loss exists, but backward did not take it (a hook or an option changed while it ran)";
      break;
  }
  return cause;
}

bool was_cut_off(std::span<const NamedParameter> parameters, const TracedBackward& backward) {
  const Tape* const tape = Tape::current();
  if (!tape) return false;
  const BackwardOnTape on_tape(*tape, backward.number());
  return std::ranges::any_of(
      parameters, [&](const NamedParameter& each) { return on_tape.trace(each.tensor.id()).kind == Fate::Kind::Cut; });
}

}  // namespace brigade::dist
