// Follows a tensor through the records to its fate, or back to the cut that it came from.
#include <brigade/autograd/tape_query.h>

#include <brigade/autograd/detail/findings.h>
#include <brigade/core/place.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <unordered_set>

namespace brigade::autograd {

namespace {

constexpr size_t kNone = ~size_t{0};

// State of a tensor that depends on the traced one.
struct Taint {
  uint32_t cuts = 0;   // fewest cuts on any path to it; 0: it carries gradients
  size_t cut = kNone;  // the first cut on that path, or its last collective
  size_t made_by = kNone;
  bool goes_on = false;  // a later operation used it without a cut

  bool live() const noexcept { return cuts == 0; }
};

std::string cut_in_words(const Tape::Record& record) {
  switch (record.cut) {
    case Cut::Detach: return "cut by detach() at " + to_string(record.where);
    case Cut::NoGrad:
      return "'" + std::string(record.op) + "' at " + to_string(record.where) + " ran under no_grad" +
             (is_in_standard_library(record.cut_at) ? "" : ", opened at " + to_string(record.cut_at));
    case Cut::NotDifferentiable:
      return "'" + std::string(record.op) + "' at " + to_string(record.where) + " has no derivative";
    case Cut::ReadAsNumber: return "read as a number at " + to_string(record.where);
    case Cut::Collective:
      return "'" + std::string(record.op) + "' at " + to_string(record.where) + " sends no gradient back";
    case Cut::None: break;
  }
  return "";
}

// `end`: the end of the records made before the backward began; `number`: the number of the backward.
Fate trace_to(const Tape& tape, uint64_t id, std::span<const uint64_t> roots, uint64_t end,
              std::optional<uint64_t> number) {
  const auto records = tape.records().first(end - tape.first_position());
  std::unordered_map<uint64_t, Taint> taints;
  taints.emplace(id, Taint{});
  size_t segment = 0;  // the first record after the latest backward that went through a use of the tensor
  size_t first_use = kNone;
  size_t last_use = kNone;
  size_t older_use = kNone;
  size_t last_cut = kNone;
  auto earlier = tape.backwards().begin();
  // Unrelated backwards (such as one of a probe on a detached result) do not end a segment.
  const auto pass_backwards = [&](size_t i) {
    for (;
         earlier != tape.backwards().end() && earlier->number != number && earlier->record <= tape.first_position() + i;
         ++earlier) {
      const bool went_through = std::any_of(earlier->root_ids.begin(), earlier->root_ids.end(), [&](uint64_t root) {
        const auto found = taints.find(root);
        return found != taints.end() && found->second.live();
      });
      if (!went_through) continue;
      segment = i;
      if (last_use != kNone) older_use = last_use;
      first_use = kNone;
    }
  };
  for (size_t i = 0; i < records.size(); ++i) {
    pass_backwards(i);
    const Tape::Record& record = records[i];
    Taint result;
    bool depends = false;
    for (uint64_t input : tape.inputs(record)) {
      const auto found = taints.find(input);
      if (found == taints.end()) continue;
      if (record.cut == Cut::None) found->second.goes_on = true;
      if (input == id) {
        last_use = i;
        if (first_use == kNone) first_use = i;
      }
      // One live path is enough; otherwise the path with the fewest cuts explains the most.
      if (!depends || found->second.cuts < result.cuts) {
        result.cuts = found->second.cuts;
        result.cut = found->second.cut;
      }
      depends = true;
    }
    if (!depends) continue;
    if (record.cut != Cut::None) {
      if (result.live()) last_cut = i;
      // A collective counts as the cut even behind a detach(): without the detach() it would still send no gradient
      // back.
      if (result.live() || record.cut == Cut::Collective) result.cut = i;
      ++result.cuts;
    }
    result.made_by = i;
    for (uint64_t output : tape.outputs(record)) {
      if (output != id) taints.insert_or_assign(output, result);
    }
  }
  pass_backwards(records.size());

  Fate fate;
  fate.begin = tape.first_position() + segment;
  fate.end = end;
  if (first_use != kNone) fate.use = records[first_use];
  if (older_use != kNone) fate.older_use = records[older_use];
  uint32_t fewest_cuts = 0;
  for (const uint64_t root : roots) {
    const auto found = taints.find(root);
    if (found == taints.end()) continue;
    if (!fate.use) fate.use = fate.older_use;
    if (found->second.live()) {
      fate.kind = Fate::Kind::Reached;
      return fate;
    }
    // A live path to another root would have delivered a gradient; keep looking for it.
    if (fate.kind == Fate::Kind::Cut && found->second.cuts >= fewest_cuts) continue;
    fate.kind = Fate::Kind::Cut;
    fate.root_depends = true;
    fate.record = records[found->second.cut];
    fewest_cuts = found->second.cuts;
  }
  if (fate.kind == Fate::Kind::Cut) return fate;
  if (first_use == kNone) return fate;
  // No root depends on it. The path was dropped at the last live result that no operation continues; readers behind a
  // cut (a metric under no_grad, item() for a log) do not count. If there is no such result, only cuts used the tensor
  // itself.
  size_t dropped = kNone;
  for (const auto& [tensor, taint] : taints) {
    if (tensor == id || !taint.live() || taint.goes_on || taint.made_by < segment) continue;
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

}  // namespace

Fate trace(const Tape& tape, uint64_t id, std::span<const Tensor> roots) {
  std::vector<uint64_t> ids;
  for (const Tensor& root : roots)
    ids.push_back(root.id());
  return trace_to(tape, id, ids, tape.first_position() + tape.records().size(), {});
}

Fate trace(const Tape& tape, uint64_t id, uint64_t backward) {
  const auto known = std::find_if(tape.backwards().begin(), tape.backwards().end(),
                                  [&](const Tape::Backward& each) { return each.number == backward; });
  if (known == tape.backwards().end() || known->record < tape.first_position()) return {};
  return trace_to(tape, id, known->root_ids, known->record, backward);
}

namespace {

// The tensors that a tensor was computed from, according to the records before the position `end`.
struct Origins {
  std::unordered_set<uint64_t> ids;  // of tensors, including that one
  std::optional<size_t> cut;         // the latest record that cut a path to it
  bool is_made_here = false;
};
enum class AtCuts : uint8_t { Stop, GoOn };

Origins origins(const Tape& tape, std::unordered_set<uint64_t> ids, uint64_t end, AtCuts at_cuts) {
  Origins found{std::move(ids), {}, false};
  const auto records = tape.records().first(end - tape.first_position());
  for (size_t i = records.size(); i-- > 0;) {
    const Tape::Record& record = records[i];
    const auto outputs = tape.outputs(record);
    if (std::ranges::none_of(outputs, [&](uint64_t output) { return found.ids.contains(output); })) continue;
    found.is_made_here = true;
    const bool cuts = record.cut != Cut::None;
    if (cuts && !found.cut) found.cut = i;
    if (cuts && at_cuts == AtCuts::Stop) continue;
    const auto inputs = tape.inputs(record);
    found.ids.insert(inputs.begin(), inputs.end());
  }
  return found;
}

// Whether the root of an earlier backward depends on a result of the same cut (first overload), or without a cut on a
// leaf that the same line had already frozen (second overload).
bool cut_was_present_in_earlier_backward(const Tape& tape, const Tape::Record& cut) {
  return std::ranges::any_of(tape.backwards(), [&](const Tape::Backward& backward) {
    if (backward.record < tape.first_position()) return false;
    const Origins all =
        origins(tape, {backward.root_ids.begin(), backward.root_ids.end()}, backward.record, AtCuts::GoOn);
    const auto records = tape.records().first(backward.record - tape.first_position());
    return std::ranges::any_of(records, [&](const Tape::Record& record) {
      return record.cut == cut.cut && Place(record.where) == Place(cut.where) &&
             std::ranges::any_of(tape.outputs(record), [&](uint64_t output) { return all.ids.contains(output); });
    });
  });
}
bool cut_was_present_in_earlier_backward(const Tape& tape, const detail::FrozenLeaf& leaf) {
  return std::ranges::any_of(tape.backwards(), [&](const Tape::Backward& backward) {
    if (backward.number <= leaf.backward || backward.record < tape.first_position()) return false;
    return origins(tape, {backward.root_ids.begin(), backward.root_ids.end()}, backward.record, AtCuts::Stop)
        .ids.contains(leaf.leaf);
  });
}

// The leaves that a tensor was computed from and that were frozen while a wrapper observed them.
struct FrozenOrigins {
  std::vector<uint64_t> leaves;
  std::string text;
  bool cut_was_present_in_earlier_backward = false;
};

FrozenOrigins frozen_among(const Tape& tape, const Origins& live) {
  FrozenOrigins found;
  for (const Tape::Record& record : tape.records()) {
    for (const uint64_t input : tape.inputs(record)) {
      if (!live.ids.contains(input) || std::ranges::find(found.leaves, input) != found.leaves.end()) continue;
      const auto leaf = detail::frozen_leaf(input);
      if (!leaf) continue;
      found.leaves.push_back(input);
      if (found.leaves.size() > 1) continue;
      found.cut_was_present_in_earlier_backward = cut_was_present_in_earlier_backward(tape, *leaf);
      const ModuleCall* const call = module_of(tape, record);
      found.text = "a parameter";
      if (call) found.text += " of module `" + *call->path + "` (" + call->type + ")";
      found.text += " that it was computed from is frozen: requires_grad was switched off at " + to_string(leaf->where);
    }
  }
  return found;
}

}  // namespace

MissingHistory explain_missing_history(const Tensor& tensor) {
  const Tape* const tape = Tape::current();
  if (!tape) return {};
  const uint64_t end = tape->first_position() + tape->records().size();
  const Origins live = origins(*tape, {tensor.id()}, end, AtCuts::Stop);
  if (!live.is_made_here) return {"no recorded operation made it", {}};
  FrozenOrigins frozen = frozen_among(*tape, live);
  if (!live.cut) {
    if (!frozen.leaves.empty()) return {std::move(frozen.text), std::move(frozen.leaves)};
    return {"nothing that it was computed from requires grad", {}};
  }
  // Both may be intended (a GAN's discriminator is frozen in one step, and its input is detached in the other): a cause
  // that was present in earlier backwards is not to blame.
  const Tape::Record& cut = tape->records()[*live.cut];
  const bool is_cut_known = !frozen.leaves.empty() && cut_was_present_in_earlier_backward(*tape, cut);
  if (frozen.leaves.empty() || (frozen.cut_was_present_in_earlier_backward && !is_cut_known)) {
    const Origins all = origins(*tape, {tensor.id()}, end, AtCuts::GoOn);
    std::vector<uint64_t> behind;
    std::ranges::copy_if(all.ids, std::back_inserter(behind), [&](uint64_t id) { return !live.ids.contains(id); });
    return {cut_in_words(cut), std::move(behind)};
  }
  if (!is_cut_known) frozen.text += "; another path was " + cut_in_words(cut);
  return {std::move(frozen.text), std::move(frozen.leaves)};
}

std::string explain_making(const Tensor& tensor) {
  const Tape* tape = Tape::current();
  if (!tape) return "";
  const auto records = tape->records();
  for (size_t i = records.size(); i-- > 0;) {
    const auto outputs = tape->outputs(records[i]);
    if (std::find(outputs.begin(), outputs.end(), tensor.id()) == outputs.end()) continue;
    return std::string("made in ") + name(records[i].dtype) + " by " + records[i].op + " at " +
           to_string(records[i].where);
  }
  return "";
}

std::vector<uint64_t> live_nodes(const Tape& tape, uint64_t id) {
  std::unordered_set<uint64_t> live{id};
  std::vector<uint64_t> sequences;
  for (const Tape::Record& record : tape.records()) {
    const auto inputs = tape.inputs(record);
    const auto outputs = tape.outputs(record);
    const bool depends = record.cut == Cut::None && std::any_of(inputs.begin(), inputs.end(),
                                                                [&](uint64_t input) { return live.contains(input); });
    if (!depends) continue;
    live.insert(outputs.begin(), outputs.end());
    if (record.sequence != 0) sequences.push_back(record.sequence);
  }
  std::sort(sequences.begin(), sequences.end());
  return sequences;
}

bool has_live_results(const Tape& tape, const Tape::Record& record) {
  // note() appends the record of the live results right before that of the others.
  const auto records = tape.records();
  for (size_t i = 1; i < records.size(); ++i) {
    if (records[i].first_id != record.first_id || records[i].cut != record.cut) continue;
    const Tape::Record& before = records[i - 1];
    return before.cut == Cut::None && before.op == record.op &&
           std::ranges::equal(tape.inputs(before), tape.inputs(records[i]));
  }
  return false;
}

const ModuleCall* module_of(const Tape& tape, const Tape::Record& record) {
  return record.call == 0 || tape.calls().empty() ? nullptr : &tape.call(record.call);
}

const ModuleCall* find_call(const Tape& tape, const Fate& fate,
                            const std::function<bool(const ModuleCall&)>& is_meant) {
  for (const ModuleCall& call : tape.calls()) {
    if (call.position >= fate.begin && call.position < fate.end && is_meant(call)) return &call;
  }
  return nullptr;
}

}  // namespace brigade::autograd
