// Following the tape from a parameter to where its path to the loss ends.
#include <brigade/dist/diagnosis/cause.h>

#include <brigade/autograd/meta.h>
#include <brigade/autograd/tape_query.h>

#include <fmt/format.h>

namespace brigade::dist {

namespace {

using autograd::Cut;
using autograd::Fate;
using autograd::Tape;

std::string module_in_words(const Tape& tape, const Tape::Record& record) {
  const autograd::ModuleCall* call = autograd::module_of(tape, record);
  if (!call) return "";
  return call->path->empty() ? fmt::format(" in the root module ({})", call->type)
                             : fmt::format(" in module `{}` ({})", *call->path, call->type);
}

CauseKind kind_of(Cut cut) {
  switch (cut) {
    case Cut::Detach: return CauseKind::Detached;
    case Cut::NoGrad: return CauseKind::NoGrad;
    case Cut::NotDifferentiable: return CauseKind::NotDifferentiable;
    case Cut::ReadAsNumber: return CauseKind::ReadAsNumber;
    case Cut::None: break;
  }
  return CauseKind::Unknown;
}

void describe_cut(Cause& cause, const Tape& tape, const Tape::Record& record) {
  cause.kind = kind_of(record.cut);
  cause.op = record.op;
  const bool under_no_grad = record.cut == Cut::NoGrad;
  cause.place = under_no_grad ? record.cut_at : record.where;
  const std::string module = module_in_words(tape, record);
  const std::string at = to_string(record.where);
  switch (cause.kind) {
    case CauseKind::Detached:
      cause.text = fmt::format("the path from the loss was cut by detach() at {}{}", at, module);
      break;
    case CauseKind::NoGrad:
      cause.text = fmt::format("used under no_grad, opened at {}", to_string(record.cut_at));
      cause.note = fmt::format("first operation there: {} at {}{}", record.op, at, module);
      break;
    case CauseKind::NotDifferentiable:
      cause.text =
          fmt::format("the path from the loss goes through {} at {}{}, which has no derivative", record.op, at, module);
      break;
    default:
      cause.text = fmt::format("its value was read as a number at {}{}, which leaves the graph", at, module);
      break;
  }
}

// No operation took the parameter of cause.module in this backward, which was called at `backward`.
void describe_not_used(Cause& cause, const Tape& tape, SourceLocation backward, bool reached_any) {
  const std::string module = cause.module.empty() ? "the root module" : "module `" + cause.module + "`";
  if (!reached_any) {
    cause.kind = CauseKind::LossNotConnected;
    cause.place = backward;
    cause.text =
        fmt::format("the loss of the backward at {} does not depend on the module at all", to_string(backward));
  } else if (const autograd::ModuleCall* call = autograd::find_call(tape, cause.module)) {
    cause.kind = CauseKind::NotUsed;
    cause.place = call->where;
    cause.text =
        fmt::format("{} was called at {}, but no operation used the parameter", module, to_string(call->where));
  } else {
    cause.kind = CauseKind::ModuleNotCalled;
    cause.place = backward;
    cause.text = fmt::format("{} was never called before the backward at {}", module, to_string(backward));
  }
}

}  // namespace

Cause find_cause(const std::string& name, const Tensor& parameter, const autograd::Plan& plan, bool reached_any) {
  Cause cause;
  cause.module = module_of(name);
  if (!parameter.requires_grad()) {
    const autograd::AutogradMeta* known = autograd::meta(parameter);
    cause.kind = CauseKind::Frozen;
    cause.text = "frozen after wrapping: requires_grad is false";
    if (known && known->requires_grad_set_at.line() != 0) {
      cause.place = known->requires_grad_set_at;
      cause.text += ", set at " + to_string(known->requires_grad_set_at);
    }
    return cause;
  }
  const Tape* tape = Tape::current();
  if (!tape) {
    cause.text = "no record of this forward (diagnosis is off, or forward ran on another thread)";
    return cause;
  }

  const Fate fate = autograd::trace(*tape, parameter.id(), plan.roots());
  switch (fate.kind) {
    case Fate::Kind::Cut: describe_cut(cause, *tape, *fate.record); break;
    case Fate::Kind::Dropped:
      cause.kind = CauseKind::OutputDropped;
      cause.op = fate.record->op;
      cause.place = fate.record->where;
      cause.text =
          fmt::format("used, but nothing it fed reached the loss; the last result on its way is that of {} at {}{}",
                      fate.record->op, to_string(fate.record->where), module_in_words(*tape, *fate.record));
      break;
    case Fate::Kind::NotUsed:
      describe_not_used(cause, *tape, plan.where(), reached_any);
      if (fate.older_use) {
        cause.note = fmt::format("last used before an earlier backward, by {} at {}", fate.older_use->op,
                                 to_string(fate.older_use->where));
      }
      break;
    case Fate::Kind::Reached:
      cause.text =
          "a path from the loss exists, but backward did not take it (a hook or an option changed while it ran)";
      break;
  }
  return cause;
}

}  // namespace brigade::dist
