// Follows a tensor through the records to what became of it, or back to the cut that it came from.
#include <brigade/autograd/tape_query.h>

#include <brigade/autograd/detail/thread_state.h>

#include <algorithm>
#include <unordered_map>

namespace brigade::autograd {

namespace {

constexpr size_t kNone = ~size_t{0};

// What is known about a tensor that depends on the traced one.
struct Taint {
  bool live = true;    // some path to it carries gradients
  size_t cut = kNone;  // otherwise: the record that cut the path
  size_t made_by = kNone;
  bool consumed = false;  // by a later operation
};

uint64_t current_segment(const Tape& tape) {
  // A forward that overflowed the tape may have pushed out the end of the last backward.
  return tape.backwards().empty() ? tape.first_position()
                                  : std::max(tape.first_position(), tape.backwards().back().record);
}

std::string cut_in_words(const Tape::Record& record) {
  switch (record.cut) {
    case Cut::Detach: return "cut by detach() at " + to_string(record.where);
    case Cut::NoGrad:
      return "'" + std::string(record.op) + "' at " + to_string(record.where) + " ran under no_grad, opened at " +
             to_string(record.cut_at);
    case Cut::NotDifferentiable:
      return "'" + std::string(record.op) + "' at " + to_string(record.where) + " has no derivative";
    case Cut::ReadAsNumber: return "read as a number at " + to_string(record.where);
    case Cut::None: break;
  }
  return "";
}

}  // namespace

Fate trace(const Tape& tape, uint64_t id, std::span<const Tensor> roots) {
  const auto records = tape.records();
  const uint64_t segment = current_segment(tape) - tape.first_position();
  std::unordered_map<uint64_t, Taint> taints;
  taints.emplace(id, Taint{});
  size_t first_use = kNone;
  size_t older_use = kNone;
  size_t last_cut = kNone;
  for (size_t i = 0; i < records.size(); ++i) {
    const Tape::Record& record = records[i];
    Taint result;
    bool depends = false;
    for (uint64_t input : tape.inputs(record)) {
      const auto found = taints.find(input);
      if (found == taints.end()) continue;
      found->second.consumed = true;
      if (input == id) {
        if (i < segment) {
          older_use = i;
        } else if (first_use == kNone) {
          first_use = i;
        }
      }
      // One live path is enough.
      if (!depends || (found->second.live && !result.live)) {
        result.live = found->second.live;
        result.cut = found->second.cut;
      }
      depends = true;
    }
    if (!depends) continue;
    if (result.live && record.cut != Cut::None) {
      result.live = false;
      result.cut = i;
      last_cut = i;
    }
    result.made_by = i;
    for (uint64_t output : tape.outputs(record)) {
      if (output != id) taints.insert_or_assign(output, result);
    }
  }

  Fate fate;
  if (first_use != kNone) fate.use = records[first_use];
  if (older_use != kNone) fate.older_use = records[older_use];
  for (const Tensor& root : roots) {
    const auto found = taints.find(root.id());
    if (found == taints.end()) continue;
    if (!fate.use) fate.use = fate.older_use;
    if (found->second.live) {
      fate.kind = Fate::Kind::Reached;
      return fate;
    }
    fate.kind = Fate::Kind::Cut;
    fate.record = records[found->second.cut];
    // A live path to another root would have delivered a gradient; keep looking for it.
  }
  if (fate.kind == Fate::Kind::Cut) return fate;
  if (first_use == kNone) return fate;
  // No root depends on it. The last live result that nothing consumed is where the path was
  // dropped; when there is none, every path ran into a cut.
  size_t dropped = kNone;
  for (const auto& [tensor, taint] : taints) {
    if (tensor == id || !taint.live || taint.consumed || taint.made_by < segment) continue;
    if (dropped == kNone || taint.made_by > dropped) dropped = taint.made_by;
  }
  if (dropped == kNone && last_cut != kNone) {
    fate.kind = Fate::Kind::Cut;
    fate.record = records[last_cut];
    return fate;
  }
  fate.kind = Fate::Kind::Dropped;
  fate.record = records[dropped != kNone ? dropped : first_use];
  return fate;
}

std::string explain_missing_history(const Tensor& tensor) {
  const Tape* tape = Tape::current();
  if (!tape) return "";
  // Backwards over the records: what made it, what made that, until a cut turns up.
  std::unordered_map<uint64_t, bool> wanted{{tensor.id(), true}};
  bool made_here = false;
  const auto records = tape->records();
  for (size_t i = records.size(); i-- > 0;) {
    const Tape::Record& record = records[i];
    bool makes = false;
    for (uint64_t output : tape->outputs(record))
      makes = makes || wanted.contains(output);
    if (!makes) continue;
    made_here = true;
    if (record.cut != Cut::None) return cut_in_words(record);
    for (uint64_t input : tape->inputs(record))
      wanted.emplace(input, true);
  }
  return made_here ? "nothing that it was computed from requires grad" : "no recorded operation made it";
}

const ModuleCall* module_of(const Tape& tape, const Tape::Record& record) {
  return record.call == 0 || tape.calls().empty() ? nullptr : &tape.call(record.call);
}

const ModuleCall* find_call(const Tape& tape, const std::string& path) {
  const uint64_t segment = current_segment(tape);
  for (const ModuleCall& call : tape.calls()) {
    if (call.position < segment) continue;
    if (*call.path == path || path.empty() || call.path->starts_with(path + ".")) return &call;
  }
  return nullptr;
}

}  // namespace brigade::autograd
