// Tracks the loss-scaler factor that each gradient carries.
//
// A loss scaler multiplies a loss, and every gradient of a backward through that product is larger
// by the same factor until somebody divides it away. The node of the product carries a ScaleMark.
// While a scaler lives, each backward hands labels down its graph, from the roots to the leaves: a
// leaf whose gradient came through one mark alone, through none, or by ways that differ, knows it
// afterwards (ScaleStamp, in GradStamp). Layers above read the stamps before a gradient moves a
// weight. Without a scaler in the process there is nothing of all this but one test per backward.
#pragma once

#include <brigade/core/error.h>
#include <brigade/core/tensor.h>

#include <cstdint>
#include <string>
#include <unordered_set>

namespace brigade::autograd {

// Misuse of a loss scaler: its calls out of order, or gradients of another scale than the one that
// they are taken for.
class ScalerError : public Error {
  using Error::Error;
};

// A gradient that an optimizer must not use as it is.
struct ScaleFault {
  size_t position = 0;  // of its parameter in the optimizer
  size_t others = 0;    // gradients of which the same is true
  std::string text;     // "is 1024 times too large, since nothing has unscaled it: ..."
};

// What a node does to the scale of the gradients that go through it (Node::scale_mark).
struct ScaleMark {
  enum class Kind : uint8_t {
    Multiplies,  // by `scale`: a scaler's scale()
    Vanishes,    // a product with the number 0: what comes through counts for nothing
    ByHand,      // a product with a number that a scaler has told: nothing can be said
  };
  Kind kind = Kind::Multiplies;
  uint64_t scaler = 0;  // its number, see begin_scaler()
  double scale = 1;
  SourceLocation where;  // of scale()
};

// The scale of a gradient, or of a part of it.
struct ScaleOrigin {
  uint64_t scaler = 0;  // 0: no scaler had to do with it
  double scale = 1;
  uint32_t times = 0;          // that a scaler's scale() was gone through
  SourceLocation scaled_at;    // of the last of them; unknown without a scaler
  SourceLocation backward_at;  // that brought it
  SourceLocation unscaled_at;  // where the scale was divided away; then `scale` is 1
  double unscaled_by = 1;      // what it was

  bool is_unscaled() const noexcept { return unscaled_at.line() != 0; }
  // As sums they fit together.
  bool agrees_with(const ScaleOrigin& other) const noexcept {
    return scale == other.scale && (scale == 1 || scaler == other.scaler);
  }
};

// What is known of a gradient's scale.
enum class ScaleKnown : uint8_t {
  Nothing,  // no backward has come while a scaler lived, or what came counts for nothing
  One,      // `first` holds for all of it
  Mixed,    // `first` for a part, `second` for another
  Untold,   // it was set or written by hand, or a backward began from a given gradient
};

struct ScaleLabel {
  ScaleKnown known = ScaleKnown::Nothing;
  ScaleOrigin first, second;

  void join(const ScaleLabel& other) noexcept;
  // After the node with that mark.
  ScaleLabel through(const ScaleMark* mark) const noexcept;
  bool operator==(const ScaleKnown& state) const noexcept { return known == state; }
};

// The label of a leaf's gradient, and the state of its memory when it was labelled: a write after it
// makes the label void.
struct ScaleStamp {
  ScaleLabel label;
  uint64_t writes = 0;     // writes_so_far()
  uint32_t version = 0;    // of the gradient's storage
  bool is_finite = false;  // a backward has looked at every element, when it noted the version

  // A backward has added what `added` says to `gradient`, which held something already if it was
  // labelled.
  void on_backward(const ScaleLabel& added, const Tensor& gradient);
  // It was put there by hand.
  void on_set(const Tensor& gradient);
  // A scaler has divided all of it by `scale`.
  void on_unscale(uint64_t scaler, double scale, SourceLocation where, const Tensor& gradient);
  // The backward that has just labelled it looks whether it is finite, for a step that only reads it
  // (begin_scaler): what has just been written is still in the cache.
  void look(const Tensor& gradient);
  // Whether a backward has seen that every element is finite, and nothing has written to it since.
  bool is_known_finite(const Tensor& gradient) const noexcept {
    return is_finite && !gradient.storage()->home() && gradient.version() == version;
  }
  // A label that a write by hand has made void says so from now on.
  void settle(const Tensor& gradient);
  // After a change that keeps to the scale (clipping, a mean over ranks), before which it was settled.
  void on_change(const Tensor& gradient);

 private:
  void note_memory(const Tensor& gradient);
  // The latest write to it that left a line since it was labelled, or "a part"; "" for none.
  const char* written_since(const Tensor& gradient) const;
};

// A scaler begins to live: its number in marks, never 0. Until end_scaler(), backwards hand down
// labels, on all threads. `only_reads`: its steps do not write to gradients, so that to look whether
// they are finite is a pass of its own, which backward spares them on the CPU.
uint64_t begin_scaler(bool only_reads = false) noexcept;
void end_scaler(bool only_reads = false) noexcept;
bool has_scalers() noexcept;
bool has_scalers_that_only_read() noexcept;

// A program that knows the scale may multiply by it itself. The numbers that this thread was told
// last are remembered.
void note_told_scale(double scale) noexcept;

// The mark of a product with a number, null for most numbers.
const ScaleMark* mark_of_number(double number) noexcept;

// Leaves that are no parameters of a module and got scaled gradients on this thread, by their ids,
// since they were last forgotten: a program may hand such a gradient on to another backward, as a
// constant of its loss, and so carry the scale to where no mark is.
const std::unordered_set<uint64_t>& unregistered_leaves_with_scaled_grads() noexcept;
void note_scaled_aside(uint64_t leaf);
void forget_scaled_aside() noexcept;

}  // namespace brigade::autograd
