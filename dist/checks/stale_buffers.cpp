// Counts handles: reassigning a member drops one handle.
#include <brigade/dist/checks/stale_buffers.h>

#include <brigade/autograd/tape.h>

#include <algorithm>

namespace brigade::dist {

namespace {

// Handles held by the module's list of buffers and by the wrapper's.
constexpr uint32_t kOwnHandles = 2;

// A forward may also look the buffer up in the module by name.
bool is_read_since(const autograd::Tape& tape, uint64_t position, uint64_t id) {
  const auto records = tape.records();
  const size_t first = position > tape.first_position() ? position - tape.first_position() : 0;
  return std::any_of(records.begin() + static_cast<std::ptrdiff_t>(std::min(first, records.size())), records.end(),
                     [&](const autograd::Tape::Record& record) {
                       const auto inputs = tape.inputs(record);
                       return std::find(inputs.begin(), inputs.end(), id) != inputs.end();
                     });
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

}  // namespace brigade::dist
