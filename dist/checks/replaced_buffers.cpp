// Looks up the latest write to each buffer in the write log, and checks on the tape whether a forward reads the
// buffer.
#include <brigade/dist/checks/replaced_buffers.h>

#include <brigade/autograd/tape.h>
#include <brigade/autograd/write_log.h>

#include <algorithm>
#include <map>

namespace brigade::dist {

namespace {

// A buffer for logging or a copy for evaluation may differ by rank; an input of a forward may not.
bool is_read_in_forward(uint64_t id) {
  const autograd::Tape* const tape = autograd::Tape::current();
  return tape && std::ranges::any_of(tape->records(), [&](const autograd::Tape::Record& record) {
           const auto inputs = tape->inputs(record);
           return record.call != 0 && std::find(inputs.begin(), inputs.end(), id) != inputs.end();
         });
}

}  // namespace

std::vector<StepOnRank::Edit> replaced_buffers(std::span<const NamedParameter> buffers, uint64_t since) {
  std::vector<StepOnRank::Edit> found;
  for (const NamedParameter& buffer : buffers) {
    const std::optional<autograd::LastWrite> last = autograd::last_write(buffer.tensor);
    if (last && last->by_hand && last->only_replaced && last->number > since && is_read_in_forward(buffer.tensor.id()))
      found.push_back({buffer.name, last->what, last->where});
  }
  return found;
}

std::vector<NamedParameter> replaced_on_some_ranks(std::span<const NamedParameter> buffers,
                                                   std::span<const StepOnRank> steps) {
  std::map<std::string, size_t> writers;
  for (const StepOnRank& step : steps) {
    for (const StepOnRank::Edit& write : step.buffers)
      ++writers[write.parameter];
  }
  std::vector<NamedParameter> found;
  for (const auto& [name, count] : writers) {
    if (count == steps.size()) continue;
    const auto known = std::ranges::find(buffers, name, &NamedParameter::name);
    found.push_back({name, known == buffers.end() ? Tensor() : known->tensor});
  }
  return found;
}

}  // namespace brigade::dist
