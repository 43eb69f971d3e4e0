// Counts handles (assigning a member again drops one), and looks up the latest write to each buffer in the write log and
// its readers on the tape.
#include <brigade/dist/checks/replaced_buffers.h>

#include <brigade/autograd/tape.h>
#include <brigade/autograd/write_log.h>

#include <algorithm>
#include <map>
#include <unordered_set>

namespace brigade::dist {
namespace {

// Handles held by the module's list of buffers and by the wrapper's.
constexpr uint32_t kOwnHandles = 2;

bool reads(const autograd::Tape& tape, const autograd::Tape::Record& record, uint64_t id) {
  return std::ranges::find(tape.inputs(record), id) != tape.inputs(record).end();
}

// A forward may also look the buffer up in the module by name.
bool is_read_since(const autograd::Tape& tape, uint64_t position, uint64_t id) {
  const auto records = tape.records();
  const size_t first = position > tape.first_position() ? position - tape.first_position() : 0;
  return std::any_of(records.begin() + static_cast<std::ptrdiff_t>(std::min(first, records.size())), records.end(),
                     [&](const autograd::Tape::Record& record) { return reads(tape, record, id); });
}

// A buffer for logging or a copy for evaluation may differ by rank; an input of a forward may not.
bool is_read_in_forward(uint64_t id) {
  const autograd::Tape* const tape = autograd::Tape::current();
  return tape && std::ranges::any_of(tape->records(), [&](const autograd::Tape::Record& record) {
           return record.call != 0 && reads(*tape, record, id);
         });
}

// Whether something in the graph was computed from the tensor, also through other values and buffers.
bool is_used_in_graph(uint64_t id) {
  const autograd::Tape* const tape = autograd::Tape::current();
  if (!tape) return false;
  std::unordered_set<uint64_t> computed{id};
  const auto is_computed = [&](uint64_t each) { return computed.contains(each); };
  for (const autograd::Tape::Record& record : tape->records()) {
    const auto outputs = tape->outputs(record);
    if (std::ranges::find(outputs, id) != outputs.end() || std::ranges::none_of(tape->inputs(record), is_computed))
      continue;
    if (record.sequence != 0) return true;
    computed.insert(outputs.begin(), outputs.end());
  }
  return false;
}

std::vector<NamedParameter> written_by(std::span<const NamedParameter> buffers, std::span<const StepOnRank> steps,
                                       std::vector<StepOnRank::Edit> StepOnRank::*writes, bool by_all) {
  std::map<std::string, size_t> writers;
  for (const StepOnRank& step : steps) {
    for (const StepOnRank::Edit& write : step.*writes)
      ++writers[write.parameter];
  }
  std::vector<NamedParameter> found;
  for (const auto& [name, count] : writers) {
    if ((count == steps.size()) != by_all) continue;
    const auto known = std::ranges::find(buffers, name, &NamedParameter::name);
    found.push_back({name, known == buffers.end() ? Tensor() : known->tensor});
  }
  return found;
}

}  // namespace

std::optional<size_t> StaleBuffers::look_at(std::span<const Tensor> buffers) {
  const autograd::Tape* const tape = autograd::Tape::current();
  if (!tape) return std::nullopt;
  const bool is_first = states_.empty();
  states_.resize(buffers.size());
  const uint64_t now = tape->first_position() + tape->records().size();
  for (size_t i = 0; i < buffers.size(); ++i) {
    State& state = states_[i];
    if (is_first) state.has_member = buffers[i].use_count() > kOwnHandles;
    if (!state.has_member) continue;
    if (buffers[i].use_count() > kOwnHandles) {
      state.alone_since = 0;
    } else if (state.alone_since == 0 || is_read_since(*tape, state.alone_since - 1, buffers[i].id())) {
      state.alone_since = now + 1;
    } else {
      state.has_member = false;
      return i;
    }
  }
  return std::nullopt;
}

std::vector<StepOnRank::Edit> replaced_buffers(std::span<const NamedParameter> buffers, uint64_t since) {
  std::vector<StepOnRank::Edit> found;
  for (const NamedParameter& buffer : buffers) {
    const std::optional<autograd::LastWrite> last = autograd::last_write(buffer.tensor);
    if (last && last->by_hand && last->only_replaced && last->number > since && is_read_in_forward(buffer.tensor.id()))
      found.push_back({buffer.name, last->what, last->where});
  }
  return found;
}

std::vector<StepOnRank::Edit> updated_buffers(std::span<const NamedParameter> buffers, uint64_t since) {
  std::vector<StepOnRank::Edit> found;
  for (const NamedParameter& buffer : buffers) {
    const std::optional<autograd::LastWrite> last = autograd::last_write(buffer.tensor);
    if (last && last->by_hand && last->is_latest && last->in_forward && last->number > since &&
        is_floating_point(buffer.tensor.dtype()) && is_used_in_graph(buffer.tensor.id()))
      found.push_back({buffer.name, last->what, last->where});
  }
  return found;
}

std::vector<NamedParameter> replaced_on_some_ranks(std::span<const NamedParameter> buffers,
                                                   std::span<const StepOnRank> steps) {
  return written_by(buffers, steps, &StepOnRank::buffers, false);
}

std::vector<NamedParameter> updated_on_all_ranks(std::span<const NamedParameter> buffers,
                                                 std::span<const StepOnRank> steps) {
  return written_by(buffers, steps, &StepOnRank::updated_buffers, true);
}

}  // namespace brigade::dist
