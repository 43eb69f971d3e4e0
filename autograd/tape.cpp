// Appends records, calls and backwards to the tape, and drops the oldest of them together.
#include <brigade/autograd/tape.h>

#include <brigade/autograd/detail/thread_state.h>
#include <brigade/core/detail/read_listener.h>

#include <mutex>
#include <unordered_set>
#include <utility>

namespace brigade::autograd {
namespace {

// No destructor: static objects that switch the tape off outlive the objects of their thread.
struct Switch {
  Tape* tape = nullptr;
  int depth = 0;
  int pauses = 0;
};
constinit thread_local Switch tape_switch;

// Reading a number takes its value out of the graph.
void note_reading(const char* method, const Tensor& tensor, SourceLocation where) {
  Tape* const tape = Tape::current();
  if (!tape) return;
  const Tensor* in[] = {&tensor};
  tape->append(method, where, in, {}, tensor.requires_grad() ? Cut::ReadAsNumber : Cut::None, where);
}
[[maybe_unused]] const bool listens = (brigade::detail::read_listener = &note_reading, true);

void drop_tape() noexcept { delete std::exchange(tape_switch.tape, nullptr); }

}  // namespace

struct Tape::AtThreadEnd {
  ~AtThreadEnd() {
    drop_tape();
    update_current();
  }
};

void Tape::update_current() noexcept { current_ = tape_switch.pauses > 0 ? nullptr : tape_switch.tape; }

Tape::Pause::Pause() noexcept {
  ++tape_switch.pauses;
  update_current();
}
Tape::Pause::~Pause() {
  --tape_switch.pauses;
  update_current();
}

bool Tape::is_kept() noexcept { return tape_switch.depth > 0; }

Tape::Instead::Instead(Tape& tape) noexcept
    : tape_(tape_switch.tape),
      depth_(tape_switch.depth),
      pauses_(tape_switch.pauses),
      call_(std::exchange(detail::current_call, 0)) {
  tape_switch = {&tape, 1, 0};
  update_current();
}
Tape::Instead::~Instead() {
  tape_switch = {tape_, depth_, pauses_};
  detail::current_call = call_;
  update_current();
}

void Tape::enable() {
  thread_local const AtThreadEnd at_thread_end;
  if (tape_switch.depth++ == 0) tape_switch.tape = new Tape;
  update_current();
}

void Tape::disable() noexcept {
  if (tape_switch.depth > 0 && --tape_switch.depth == 0) {
    drop_tape();
    update_current();
    detail::current_call = 0;
  }
}

std::span<const uint64_t> Tape::inputs(const Record& record) const noexcept {
  return ids_.span().subspan(record.first_id - first_id_, record.inputs);
}

std::span<const uint64_t> Tape::outputs(const Record& record) const noexcept {
  return ids_.span().subspan(record.first_id - first_id_ + record.inputs, record.outputs);
}

void Tape::append(const char* op, SourceLocation where, std::span<const Tensor* const> inputs,
                  std::span<const Tensor* const> outputs, Cut cut, SourceLocation cut_at, uint64_t sequence) {
  if (records_.size() >= kMaxRecords) drop_before(first_position_ + kMaxRecords / 2);
  const uint64_t first_id = first_id_ + ids_.size();
  for (const Tensor* tensor : inputs) {
    if (tensor->defined()) ids_.push_back(tensor->id());
  }
  const size_t input_count = first_id_ + ids_.size() - first_id;
  for (const Tensor* tensor : outputs)
    ids_.push_back(tensor->id());
  records_.push_back({op, where, cut_at, first_id, sequence, detail::current_call, static_cast<uint16_t>(input_count),
                      static_cast<uint16_t>(outputs.size()), cut, outputs.empty() ? kFloat32 : outputs[0]->dtype()});
}

uint32_t Tape::enter(ModuleCall call) {
  call.position = first_position_ + records_.size();
  calls_.push_back(call);
  return first_call_ + static_cast<uint32_t>(calls_.size()) - 1;
}

void Tape::finish_backward(uint64_t number, SourceLocation where, std::span<const Tensor> roots) {
  Backward finished{number, where, first_position_ + records_.size(), {}};
  for (const Tensor& root : roots)
    finished.root_ids.push_back(root.id());
  backwards_.push_back(std::move(finished));
  if (backwards_.size() > kBackwards) {
    drop_before(backwards_.front().record);
    backwards_.erase(backwards_.begin());
  }
}

void Tape::drop_before(uint64_t position) {
  if (position <= first_position_) return;
  const size_t count = std::min<size_t>(position - first_position_, records_.size());
  if (count == 0) return;
  const uint64_t next_id = count < records_.size() ? records_[count].first_id : first_id_ + ids_.size();
  records_.drop(count);
  ids_.drop(next_id - first_id_);
  first_position_ += count;
  first_id_ = next_id;
  // A record needs its call and all that enclose it. Outermost calls follow one another in time, so
  // the first kept record that ran in a module names the oldest call that is still needed (or the
  // calls that are running now do).
  uint32_t oldest = detail::current_call;
  for (const Record& record : records()) {
    if (record.call == 0) continue;
    oldest = record.call;
    break;
  }
  if (oldest == 0) oldest = first_call_ + static_cast<uint32_t>(calls_.size());
  while (oldest - first_call_ < calls_.size() && call(oldest).parent >= first_call_)
    oldest = call(oldest).parent;
  calls_.drop(oldest - first_call_);
  first_call_ = oldest;
}

// --- Enters and leaves the current module call, and keeps one copy of each path for the whole process.

ScopeGuard::ScopeGuard(const std::string* path, const char* type, SourceLocation where, const void* module,
                       uint64_t unregistered) noexcept
    : previous_(detail::current_call) {
  if (Tape* tape = Tape::current())
    detail::current_call = tape->enter({path, type, module, where, previous_, 0, unregistered});
}

ScopeGuard::~ScopeGuard() { detail::current_call = previous_; }

const std::string* intern(const std::string& text) {
  static std::mutex mutex;
  // Never destroyed: records may be read until the process ends.
  static auto* const texts = new std::unordered_set<std::string>;
  std::lock_guard lock(mutex);
  return &*texts->insert(text).first;
}

}  // namespace brigade::autograd
