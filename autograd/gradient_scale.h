// Tracks the loss-scaler factor that each gradient carries.
//
// A loss scaler multiplies a loss, and every gradient of a backward through that product is larger by the same factor
// until it is divided out. The node of the product carries a ScaleMark. While a scaler lives, each backward propagates
// labels down its graph, from the roots to the leaves: the label of a leaf (ScaleStamp, in GradStamp) records whether
// its gradient came through one mark, through none, or through paths that differ. Layers above read the stamps before a
// gradient moves a weight. Without a scaler in the process, all this costs one test per backward.
#pragma once

#include <brigade/core/error.h>
#include <brigade/core/tensor.h>

#include <cstdint>
#include <string>
#include <unordered_set>

namespace brigade::autograd {

// Misuse of a loss scaler: calls out of order, or gradients whose scale is not the expected one.
class ScalerError : public Error {
  using Error::Error;
};

// A gradient that an optimizer must not use with its present scale.
struct ScaleFault {
  size_t position = 0;  // of its parameter in the optimizer
  size_t others = 0;    // further gradients with the same fault
  std::string text;     // "is 1024 times too large, since nothing has unscaled it: ..."
  std::string advice;   // "call scaler.step(optimizer) in place of optimizer.step(), ..."
};

// The effect of a node on the scale of the gradients that pass through it (Node::scale_mark).
struct ScaleMark {
  enum class Kind : uint8_t {
    Multiplies,  // by `scale`: a scaler's scale()
    Vanishes,    // a product with the number 0: gradients through it do not count
    ByHand,      // a product with a number that a scaler reported: the scale is unknown
  };
  Kind kind = Kind::Multiplies;
  uint64_t scaler = 0;  // its number, see begin_scaler()
  double scale = 1;
  SourceLocation where;  // of scale()
};

// The scale of a gradient, or of a part of it.
struct ScaleOrigin {
  uint64_t scaler = 0;  // 0: no scaler was involved
  double scale = 1;
  uint32_t times = 0;          // how often it passed a scaler's scale()
  SourceLocation scaled_at;    // the last scale(); unknown without a scaler
  SourceLocation backward_at;  // the backward that produced it
  SourceLocation unscaled_at;  // where the scale was divided away; then `scale` is 1
  double unscaled_by = 1;      // the scale that was divided away

  bool is_unscaled() const noexcept { return unscaled_at.line() != 0; }
  // Whether gradients of both origins can be summed.
  bool agrees_with(const ScaleOrigin& other) const noexcept {
    return scale == other.scale && (scale == 1 || scaler == other.scaler);
  }
};

// The state of knowledge about a gradient's scale.
enum class ScaleKnown : uint8_t {
  Nothing,  // no backward ran while a scaler lived, or its contributions do not count
  One,      // `first` holds for all of it
  Mixed,    // `first` holds for a part, `second` for another
  Unknown,  // it was set or written by hand, or a backward began from a given gradient
};

struct ScaleLabel {
  ScaleKnown known = ScaleKnown::Nothing;
  ScaleOrigin first, second;

  void join(const ScaleLabel& other) noexcept;
  // The label behind a node with that mark.
  ScaleLabel through(const ScaleMark* mark) const noexcept;
  bool operator==(const ScaleKnown& state) const noexcept { return known == state; }
};

// The label of a leaf's gradient, and the state of its memory when it was labeled: a later write invalidates the
// label.
struct ScaleStamp {
  ScaleLabel label;
  uint64_t writes = 0;     // writes_so_far()
  uint32_t version = 0;    // of the gradient's storage
  bool is_finite = false;  // a backward has found every element finite, at the noted version

  // Called after a backward added a contribution labeled `added` to `gradient`. If `gradient` was labeled, it already
  // held something.
  void on_backward(const ScaleLabel& added, const Tensor& gradient);
  // Called when the gradient was set by hand.
  void on_set(const Tensor& gradient);
  // Called when a scaler has divided all of the gradient by `scale`.
  void on_unscale(uint64_t scaler, double scale, SourceLocation where, const Tensor& gradient);
  // Checks whether the gradient is finite, right after a backward has labeled it, for a step that only reads it
  // (begin_scaler): the values just written are still in the cache.
  void look(const Tensor& gradient);
  // Whether a backward has seen that every element is finite, and nothing has written to it since.
  bool is_known_finite(const Tensor& gradient) const noexcept {
    return is_finite && !gradient.storage()->home() && gradient.version() == version;
  }
  // Updates the label if a write by hand has invalidated it.
  void settle(const Tensor& gradient);
  // Called after a change that preserves the scale (clipping, a mean over ranks). The caller has called settle() before
  // it.
  void on_change(const Tensor& gradient);

 private:
  void note_memory(const Tensor& gradient);
  // The latest logged write to the gradient since it was labeled; "a part" if it covered only a part, "" if there was
  // none.
  const char* written_since(const Tensor& gradient) const;
};

// Registers a scaler and returns its number in marks, never 0. Until end_scaler(), backwards on all threads propagate
// labels. `only_reads`: the scaler's steps do not write to gradients, so their finiteness check would be a separate
// pass; on the CPU, backward does it for them.
uint64_t begin_scaler(bool only_reads = false) noexcept;
void end_scaler(bool only_reads = false) noexcept;
bool has_scalers() noexcept;
bool has_scalers_that_only_read() noexcept;

// A program that knows the scale may multiply by it itself, so remember the numbers that scalers last reported to this
// thread.
void note_reported_scale(double scale) noexcept;

// The mark of a product with a number, null for most numbers.
const ScaleMark* mark_of_number(double number) noexcept;

// Ids of the leaves that are not parameters of a module and got scaled gradients on this thread, since the last
// forget_unregistered_scaled_leaves(): a program may pass such a gradient to another backward as a constant of its
// loss, and so carry the scale past any mark.
const std::unordered_set<uint64_t>& unregistered_leaves_with_scaled_grads() noexcept;
void note_unregistered_scaled_leaf(uint64_t leaf);
void forget_unregistered_scaled_leaves() noexcept;

}  // namespace brigade::autograd
