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
  set_place(cause, under_no_grad ? record.cut_at : record.where);
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

}  // namespace

Cause find_cause(const std::string& name, const Tensor& parameter, const autograd::Plan& plan, bool reached_any) {
  Cause cause;
  const size_t dot = name.rfind('.');
  const std::string module = dot == std::string::npos ? "" : name.substr(0, dot);
  cause.module = module;
  const std::string module_name = module.empty() ? "the root module" : "module `" + module + "`";

  if (!parameter.requires_grad()) {
    const autograd::AutogradMeta* known = autograd::meta(parameter);
    cause.kind = CauseKind::Frozen;
    cause.text = "frozen after wrapping: requires_grad is false";
    if (known && known->requires_grad_set_at.line() != 0) {
      set_place(cause, known->requires_grad_set_at);
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
      set_place(cause, fate.record->where);
      cause.text =
          fmt::format("used, but nothing it fed reached the loss; the last result on its way is that of {} at {}{}",
                      fate.record->op, to_string(fate.record->where), module_in_words(*tape, *fate.record));
      break;
    case Fate::Kind::NotUsed:
      if (!reached_any) {
        cause.kind = CauseKind::LossNotConnected;
        set_place(cause, plan.where());
        cause.text =
            fmt::format("the loss of the backward at {} does not depend on the module at all", to_string(plan.where()));
      } else if (const autograd::ModuleCall* call = autograd::find_call(*tape, module)) {
        cause.kind = CauseKind::NotUsed;
        set_place(cause, call->where);
        cause.text = fmt::format("{} was called at {}, but no operation used the parameter", module_name,
                                 to_string(call->where));
      } else {
        cause.kind = CauseKind::ModuleNotCalled;
        set_place(cause, plan.where());
        cause.text = fmt::format("{} was never called before the backward at {}", module_name, to_string(plan.where()));
      }
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

// Fields are separated by a unit separator, which no source text contains.
constexpr char kSeparator = '\x1f';

std::string encode(const Cause& cause) {
  std::string text = std::to_string(static_cast<int>(cause.kind));
  for (const std::string& field :
       {cause.op, cause.file, std::to_string(cause.line), cause.module, cause.text, cause.note}) {
    text += kSeparator;
    for (char c : field)
      text += c == '\n' || c == kSeparator ? ' ' : c;
  }
  return text;
}

Cause decode_cause(const std::string& line) {
  std::vector<std::string> fields(1);
  for (char c : line) {
    if (c == kSeparator) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  fields.resize(7);
  Cause cause;
  cause.kind = static_cast<CauseKind>(std::atoi(fields[0].c_str()));
  cause.op = fields[1];
  cause.file = fields[2];
  cause.line = static_cast<uint32_t>(std::strtoul(fields[3].c_str(), nullptr, 10));
  cause.module = fields[4];
  cause.text = fields[5];
  cause.note = fields[6];
  return cause;
}

}  // namespace brigade::dist
