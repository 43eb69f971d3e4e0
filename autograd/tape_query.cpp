// Follows a tensor through the records to its fate, or back to the cut that it came from.
#include <brigade/autograd/tape_query.h>

#include <brigade/autograd/detail/findings.h>
#include <brigade/core/place.h>

#include <algorithm>
#include <iterator>
#include <ranges>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace brigade::autograd {
namespace {

constexpr size_t kNone = ~size_t{0};

// State of a tensor that depends on the traced one.
struct Taint {
  uint32_t cuts = 0;   // fewest cuts on any path to it; 0: it carries gradients
  size_t cut = kNone;  // the first cut on that path, or its last collective
  size_t made_by = kNone;
  bool goes_on = false;  // a later operation used it without a cut
  bool counts = false;   // comes from a use that belongs to the backward
  bool is_copy = false;  // made of the traced tensor behind a cut, outside all modules

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

// Adds the new tensors of a record, without those that it wrote to.
void add_results(std::unordered_set<uint64_t>& ids, std::span<const uint64_t> inputs,
                 std::span<const uint64_t> outputs) {
  for (const uint64_t output : outputs)
    if (std::ranges::find(inputs, output) == inputs.end()) ids.insert(output);
}
bool holds_one_of(const std::unordered_set<uint64_t>& ids, std::span<const uint64_t> some) {
  return std::ranges::any_of(some, [&](uint64_t id) { return ids.contains(id); });
}

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
    if (!holds_one_of(found.ids, outputs)) continue;
    found.is_made_here = true;
    const bool cuts = record.cut != Cut::None;
    if (cuts && !found.cut) found.cut = i;
    if (cuts && at_cuts == AtCuts::Stop) continue;
    const auto inputs = tape.inputs(record);
    found.ids.insert(inputs.begin(), inputs.end());
  }
  return found;
}
Origins origins(const Tape& tape, const Tape::Backward& backward, AtCuts at_cuts) {
  return origins(tape, {backward.root_ids.begin(), backward.root_ids.end()}, backward.record, at_cuts);
}

}  // namespace

BackwardOnTape::BackwardOnTape(const Tape& tape, std::span<const Tensor> roots, IsMeant is_own, uint64_t newest)
    : tape_(tape), is_own_(std::move(is_own)), newest_(newest), end_(tape.first_position() + tape.records().size()) {
  for (const Tensor& root : roots)
    roots_.push_back(root.id());
  find_records();
}

BackwardOnTape::BackwardOnTape(const Tape& tape, uint64_t number, IsMeant is_own, uint64_t newest)
    : tape_(tape), is_own_(std::move(is_own)), newest_(newest), end_(tape.first_position()), number_(number) {
  const auto known = std::ranges::find(tape.backwards(), number, &Tape::Backward::number);
  if (known == tape.backwards().end() || known->record < tape.first_position()) return;
  roots_ = known->root_ids;
  end_ = known->record;
  find_records();
}

BackwardOnTape::Scope BackwardOnTape::scope_of(uint32_t call) const {
  Scope scope;
  for (; call >= tape_.first_call(); call = tape_.call(call).parent) {
    const bool is_own = !is_own_ || is_own_(tape_.call(call));
    if (is_own || !scope.is_own) scope = {call, is_own};
  }
  return scope;
}

// Finds what the roots were computed from.
void BackwardOnTape::find_records() {
  const auto all = records();
  for (const Tape::Record& record : all)  // those of one call follow each other
    scopes_.push_back(!scopes_.empty() && record.call == all[scopes_.size() - 1].call ? scopes_.back()
                                                                                      : scope_of(record.call));
  belongs_.assign(all.size(), 0);
  ids_.insert(roots_.begin(), roots_.end());
  std::unordered_set<uint64_t> data;  // results, and batches
  bool has_own = false;
  for (size_t i = all.size(); i-- > 0;) {
    const auto inputs = tape_.inputs(all[i]), outputs = tape_.outputs(all[i]);
    if (!holds_one_of(ids_, outputs)) continue;
    belongs_[i] = scopes_[i].call != 0 || all[i].cut == Cut::None;
    ids_.insert(inputs.begin(), inputs.end());
    add_results(data, inputs, outputs);
    for (const uint64_t input : inputs)
      if (newest_ > 0 && input > newest_) data.insert(input);
    if (scopes_[i].call != 0) calls_.insert(scopes_[i].call);
    has_own = has_own || scopes_[i].is_own;
  }
  all_belong_ = !has_own;
  if (has_own) link_records(std::move(data));
}

// Adds what records gradients and takes some of `data`, and has not served an earlier backward.
void BackwardOnTape::link_records(std::unordered_set<uint64_t> data) {
  const auto all = records();
  std::unordered_set<uint32_t> served;  // own calls
  size_t begin = 0;                     // the first record after these backwards
  for (const Tape::Backward& each : tape_.backwards()) {
    if (each.number == number_ || each.record > end_ || each.record < tape_.first_position()) continue;
    const size_t count = each.record - tape_.first_position();
    const auto behind = origins(tape_, each, AtCuts::Stop).ids;
    for (size_t i = 0; i < count; ++i) {
      if (!scopes_[i].is_own || !holds_one_of(behind, tape_.outputs(all[i]))) continue;
      served.insert(scopes_[i].call);
      begin = count;
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const uint32_t call = scopes_[i].call;
    if (belongs_[i] || (call == 0 ? i < begin : served.contains(call))) continue;
    const auto inputs = tape_.inputs(all[i]);
    if (all[i].cut == Cut::NoGrad || !holds_one_of(data, inputs)) continue;
    add_results(data, inputs, tape_.outputs(all[i]));
    const bool records_gradients = all[i].sequence != 0;
    if (call == 0) {
      belongs_[i] = records_gradients || all[i].cut != Cut::None;
    } else if (records_gradients) {
      calls_.insert(call);
    }
  }
}

Fate BackwardOnTape::trace(uint64_t id) const {
  const auto all = records();
  std::unordered_map<uint64_t, Taint> taints;
  taints.emplace(id, Taint{});
  size_t segment = 0;  // the first record after the latest backward that went through a use of the tensor
  size_t first_use = kNone;
  size_t last_use = kNone;
  size_t last_read = kNone;  // as a number
  size_t last_cut = kNone;
  std::vector<size_t> cuts;  // on paths to a root
  auto earlier = tape_.backwards().begin();
  // Unrelated backwards (such as one of a probe on a detached result) do not end a segment.
  const auto pass_backwards = [&](size_t i) {
    for (; earlier != tape_.backwards().end() && earlier->number != number_ &&
           earlier->record <= tape_.first_position() + i;
         ++earlier) {
      const bool went_through = std::ranges::any_of(earlier->root_ids, [&](uint64_t root) {
        const auto found = taints.find(root);
        return found != taints.end() && found->second.live();
      });
      if (!went_through) continue;
      segment = i;
      first_use = kNone;
    }
  };
  for (size_t i = 0; i < all.size(); ++i) {
    pass_backwards(i);
    const Tape::Record& record = all[i];
    const auto outputs = tape_.outputs(record);
    if (std::ranges::find(outputs, id) != outputs.end()) continue;  // a write to the tensor does not use it
    const Scope scope = scopes_[i];
    const auto inputs = tape_.inputs(record);
    // An update of another parameter by its value (an adapter that is merged, an average) is no use in forward.
    const bool updates = record.sequence == 0 && scope.call == 0 && !outputs.empty() && outputs[0] <= newest_ &&
                         std::ranges::find(inputs, outputs[0]) != inputs.end();
    if (updates) continue;
    const bool belongs = all_belong_ || belongs_[i] || (scope.is_own && calls_.contains(scope.call));
    Taint result;
    bool depends = false;
    for (const uint64_t input : inputs) {
      const auto found = taints.find(input);
      // The average of weights of another model is not a use of these weights.
      if (found == taints.end() || (found->second.is_copy && scope.call != 0 && !scope.is_own)) continue;
      Taint& taint = found->second;
      if (record.cut == Cut::None) taint.goes_on = true;
      if (input == id) {
        if (scope.is_own || all_belong_) last_use = i;
        if (record.cut == Cut::ReadAsNumber) last_read = i;
        if (belongs && first_use == kNone) first_use = i;
      }
      // One live path is enough; otherwise the path with the fewest cuts explains the most.
      if (!depends || taint.cuts < result.cuts) {
        result.cuts = taint.cuts;
        result.cut = taint.cut;
        result.is_copy = scope.call == 0 && (input == id || taint.is_copy);
      }
      result.counts = result.counts || (input == id ? belongs : taint.counts);
      depends = true;
    }
    if (!depends) continue;
    if (record.cut != Cut::None) {
      if (result.live() && result.counts) last_cut = i;
      if (result.live() && result.counts && scope.is_own && record.cut == Cut::ReadAsNumber) cuts.push_back(i);
      if (result.live() && holds_one_of(ids_, outputs)) cuts.push_back(i);
      // A collective counts as the cut even behind a detach(): without the detach() it would still send no gradient
      // back.
      if (result.live() || record.cut == Cut::Collective) result.cut = i;
      ++result.cuts;
    }
    result.is_copy = result.is_copy && !result.live();
    result.made_by = i;
    for (const uint64_t output : outputs)
      taints.insert_or_assign(output, result);
  }
  pass_backwards(all.size());

  Fate fate;
  fate.begin = tape_.first_position() + segment;
  uint32_t fewest_cuts = 0;
  for (const uint64_t root : roots_) {
    const auto found = taints.find(root);
    if (found == taints.end()) continue;
    if (found->second.live()) {
      fate.kind = Fate::Kind::Reached;
      return fate;
    }
    // A live path to another root would have delivered a gradient; keep looking for it.
    if (fate.kind == Fate::Kind::Cut && found->second.cuts >= fewest_cuts) continue;
    fate.kind = Fate::Kind::Cut;
    fate.root_depends = true;
    fate.record = all[found->second.cut];
    fewest_cuts = found->second.cuts;
  }
  if (fate.kind == Fate::Kind::Cut) {
    for (const size_t i : cuts)
      if (Place(all[i].where) != Place(fate.record->where)) fate.other_cuts.push_back(all[i]);
    return fate;
  }
  if (first_use == kNone) {
    // A log reads other tensors at the same line.
    const bool is_read_alone = last_read != kNone && std::ranges::none_of(all, [&](const Tape::Record& each) {
                                 return each.cut == Cut::ReadAsNumber &&
                                        Place(each.where) == Place(all[last_read].where) &&
                                        tape_.inputs(each).front() != id;
                               });
    if (last_use == kNone && is_read_alone) last_use = last_read;
    if (last_use != kNone) fate.other_use = all[last_use];
    return fate;
  }
  // No root depends on it. The path was dropped at the last live result that no operation continues; readers behind a
  // cut (a metric under no_grad, item() for a log) do not count. If there is no such result, only cuts used the tensor
  // itself.
  size_t dropped = kNone;
  for (const auto& [tensor, taint] : taints) {
    if (tensor == id || !taint.live() || !taint.counts || taint.goes_on || taint.made_by < segment) continue;
    if (dropped == kNone || taint.made_by > dropped) dropped = taint.made_by;
  }
  if (dropped == kNone && last_cut != kNone) {
    fate.kind = Fate::Kind::Cut;
    fate.record = all[last_cut];
    return fate;
  }
  fate.kind = Fate::Kind::Dropped;
  fate.record = all[dropped != kNone ? dropped : first_use];
  return fate;
}

bool BackwardOnTape::belongs(uint32_t call, const Fate& fate) const {
  const uint64_t position = tape_.call(call).position;
  return position >= fate.begin && position < end_ && (all_belong_ || calls_.contains(scope_of(call).call));
}

const ModuleCall* BackwardOnTape::find_call(const Fate& fate, const IsMeant& is_meant) const {
  const auto calls = tape_.calls();
  for (uint32_t i = 0; i < calls.size(); ++i)
    if (is_meant(calls[i]) && belongs(tape_.first_call() + i, fate)) return &calls[i];
  return nullptr;
}

namespace {

// Whether the root of an earlier backward depends on a result of the same cut (first overload), or without a cut on a
// leaf that the same line had already frozen (second overload).
bool cut_was_present_in_earlier_backward(const Tape& tape, const Tape::Record& cut) {
  return std::ranges::any_of(tape.backwards(), [&](const Tape::Backward& backward) {
    if (backward.record < tape.first_position()) return false;
    const Origins all = origins(tape, backward, AtCuts::GoOn);
    const auto records = tape.records().first(backward.record - tape.first_position());
    return std::ranges::any_of(records, [&](const Tape::Record& record) {
      return record.cut == cut.cut && Place(record.where) == Place(cut.where) &&
             holds_one_of(all.ids, tape.outputs(record));
    });
  });
}
bool cut_was_present_in_earlier_backward(const Tape& tape, const detail::FrozenLeaf& leaf) {
  return std::ranges::any_of(tape.backwards(), [&](const Tape::Backward& backward) {
    if (backward.number <= leaf.backward || backward.record < tape.first_position()) return false;
    return origins(tape, backward, AtCuts::Stop).ids.contains(leaf.leaf);
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

}  // namespace brigade::autograd
