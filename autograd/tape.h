// The tape: a lightweight record of forward, so that a missing gradient can be explained.
//
// While a tape is on, every operation leaves one record: its name, the user's line, the module call
// it ran in, the ids of inputs and outputs, and whether a path of gradients ended there (a cut). It
// holds no tensor data and keeps no tensor alive. Records of the last few backwards are kept,
// because one backward may use a forward that an earlier one has used already.
#pragma once

#include <brigade/core/tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace brigade::autograd::detail {

// A contiguous vector that appends at the end and drops from the front. Dropped elements stay in memory until they are at least as many as the rest, so that on average each element is moved
// at most once, however often elements are dropped.
template <class T>
class SlidingVector {
 public:
  void push_back(T element) { all_.push_back(std::move(element)); }
  // Drops the first `count` elements; `count` is at most size().
  void drop(size_t count) {
    dropped_ += count;
    if (dropped_ < all_.size() - dropped_) return;
    all_.erase(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(dropped_));
    dropped_ = 0;
  }

  size_t size() const noexcept { return all_.size() - dropped_; }
  const T& operator[](size_t i) const noexcept { return all_[dropped_ + i]; }
  std::span<const T> span() const noexcept { return std::span(all_).subspan(dropped_); }

 private:
  std::vector<T> all_;
  size_t dropped_ = 0;
};

}  // namespace brigade::autograd::detail

namespace brigade::autograd {

// Why the results of an operation carry no history although an input requires grad. Collective: the values passed
// through the ranks, which send no gradient back.
enum class Cut : uint8_t { None, Detach, NoGrad, NotDifferentiable, ReadAsNumber, Collective };

// One module call.
struct ModuleCall {
  const std::string* path = nullptr;  // "" for a root
  const char* type = "";
  const void* module = nullptr;  // its address, which may belong to another module later
  SourceLocation where;          // the caller's line
  uint32_t parent = 0;           // index of the enclosing call, 0 when none
  uint64_t position = 0;         // of the first record made in it
  // The id of its first trained parameter if the module is registered nowhere and another one calls it; otherwise 0.
  uint64_t unregistered = 0;
};

class Tape {
 public:
  struct Record {
    const char* op;
    SourceLocation where;
    SourceLocation cut_at;  // for Cut::NoGrad: where the guard was opened
    uint64_t first_id;      // into ids(): inputs, then outputs
    uint64_t sequence;      // of its node, 0 when it has none
    uint32_t call;          // module call, 0 when none
    uint16_t inputs;
    uint16_t outputs;
    Cut cut;
    DType dtype;  // of the first output; Float32 where there is none
  };
  // A backward that ran.
  struct Backward {
    uint64_t number;
    SourceLocation where;
    uint64_t record;  // position of the first record after it
    std::vector<uint64_t> root_ids;
  };

  std::span<const uint64_t> inputs(const Record& record) const noexcept;
  std::span<const uint64_t> outputs(const Record& record) const noexcept;
  // Records kept, oldest first; record i has position first_position() + i.
  std::span<const Record> records() const noexcept { return records_.span(); }
  uint64_t first_position() const noexcept { return first_position_; }
  // Finished backwards that are still covered, oldest first.
  std::span<const Backward> backwards() const noexcept { return backwards_; }
  const ModuleCall& call(uint32_t index) const noexcept { return calls_[index - first_call_]; }
  // Module calls kept, oldest first; call i has the index first_call() + i.
  std::span<const ModuleCall> calls() const noexcept { return calls_.span(); }
  uint32_t first_call() const noexcept { return first_call_; }

  // The tape of the calling thread; nullptr when it is off.
  static Tape* current() noexcept { return current_; }
  // Nested switches of the calling thread: the tape is on while any is on. Switching the last one
  // off forgets everything.
  static void enable();
  static void disable() noexcept;
  // RAII: the calling thread has no tape, so that the operations of backward are not part of forward's record.
  class Pause {
   public:
    Pause() noexcept;
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
  };

  // Whether the calling thread keeps a tape, paused or not.
  static bool is_kept() noexcept;
  // RAII: the calling thread records on `tape` in place of its own, outside any module, for a segment that a checkpoint
  // runs again. While it lives, do not switch the thread's own tape on or off.
  class Instead {
   public:
    explicit Instead(Tape& tape) noexcept;
    ~Instead();
    Instead(const Instead&) = delete;
    Instead& operator=(const Instead&) = delete;

   private:
    Tape* tape_;
    int depth_, pauses_;
    uint32_t call_;
  };

  // --- called by autograd
  void append(const char* op, SourceLocation where, std::span<const Tensor* const> inputs,
              std::span<const Tensor* const> outputs, Cut cut, SourceLocation cut_at, uint64_t sequence = 0);
  uint32_t enter(ModuleCall call);
  // Drops the records that only finished backwards older than the last kBackwards could use.
  void finish_backward(uint64_t number, SourceLocation where, std::span<const Tensor> roots);

  static constexpr size_t kBackwards = 8;
  static constexpr size_t kMaxRecords = 1 << 20;  // the oldest are dropped first

 private:
  friend class Pause;
  friend class Instead;
  struct AtThreadEnd;
  static void update_current() noexcept;
  BRIGADE_INITIAL_EXEC static inline constinit thread_local Tape* current_ = nullptr;

  void drop_before(uint64_t position);

  detail::SlidingVector<Record> records_;
  detail::SlidingVector<uint64_t> ids_;
  detail::SlidingVector<ModuleCall> calls_;
  std::vector<Backward> backwards_;
  uint64_t first_position_ = 0;
  uint64_t first_id_ = 0;
  uint32_t first_call_ = 1;  // 0 means "none"
};

// --- Tracks the running module, with a stack per thread, so that a record on the tape knows its module path.

// A module call. `path` ("encoder.0.fc1", "" for the root) and `type` ("Linear") must outlive every
// tape: intern() them.
class ScopeGuard {
 public:
  // `module`, `unregistered`: as in ModuleCall.
  ScopeGuard(const std::string* path, const char* type, SourceLocation where, const void* module = nullptr,
             uint64_t unregistered = 0) noexcept;
  ~ScopeGuard();
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  uint32_t previous_;
};

// A copy of the text that lives as long as the process; equal texts give the same pointer.
// Thread-safe.
const std::string* intern(const std::string& text);

}  // namespace brigade::autograd
