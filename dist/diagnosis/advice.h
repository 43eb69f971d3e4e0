// Advice: the warnings and notes given at the end of a backward whose gradients are sound. They do
// not stop training.
//
// Each kind of advice is a class in its own file and registers itself through a static object:
// Brigade's own kinds are in dist/diagnosis/kinds, yours in your program. A reducer owns one
// instance of each kind and calls it after every backward that it reduces, in the order of the
// kinds' names.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/core/place.h>
#include <brigade/dist/buckets/words.h>
#include <brigade/dist/diagnosis/finished_backward.h>
#include <brigade/dist/errors/rank_activity.h>
#include <brigade/dist/errors/verdict.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace brigade::dist {

// --- Statistics: words that belong to advice, which decides from them whether a closer look is worth an exchange.

// The number of backwards that this rank's gradients still hold, and the latest of them.
struct KeptBackwards {
  int64_t count = 0;
  Place at;
};

// Forwards that record gradients, since the latest backward that was reduced.
struct BegunForwards {
  std::vector<std::pair<Line, int64_t>> lines;  // with their numbers; those that were run again count once
  std::string error;                            // that one of them threw
  Line where;                                   // of that one

  void clear() noexcept { lines.clear(), error.clear(); }  // keeps the memory
  int64_t& at(Line line) {
    const auto known = std::ranges::find(lines, line, &std::pair<Line, int64_t>::first);
    return (known == lines.end() ? lines.emplace_back(line, 0) : *known).second;
  }
};

// The numbers that a loss was last multiplied by, and the operation before them.
struct LossCore {
  double factor = 1;  // the product of the numbers, without that of a loss scaler, which is the same on all ranks
  SourceLocation at;  // the latest multiplication by a number
  const char* of = "";
  SourceLocation of_at;
  bool adds_samples = false;  // the loss is a sum over its samples
};
LossCore core_of(const autograd::Plan* plan);

// What a rank knows when a backward that it reduces begins.
struct StartedBackward {
  uint64_t number = 0;                   // from 1, the same on every rank
  const autograd::Plan* plan = nullptr;  // null if this rank takes part without a sound backward of its own
  int64_t rows = 0;                      // samples in the batch, 0 if not known
  int64_t gathered = 1;                  // backwards summed up in the gradients: this and earlier ones
  // The earlier ones among them that were already averaged, and since then neither cleared nor used by a step.
  KeptBackwards kept = {};
  bool adds = false;  // to a gradient of an earlier backward that was neither cleared nor used by a step
  LossCore loss = {};
  const BegunForwards* forwards = nullptr;
};

class Statistic : public SentWord {
 public:
  using Kind = WordKind;
  // Called when a backward begins that this rank reduces, before any bucket is sent.
  virtual void begin(const StartedBackward& backward) = 0;
};

// --- Advice

class Advice {
 public:
  virtual ~Advice() = default;

  // Called on every rank, even if `diagnosis` finds nothing to examine, so the common case must
  // cost next to nothing. State kept between backwards (how often it has looked, what it has
  // reported) belongs in members.
  //
  // A verdict is kept, and a warning printed, each time one is returned; every rank must return the
  // same verdict. Its severity is Warning or Note: an error must be found before the gradients are
  // used.
  //
  // exchange() is a collective: whether it is called may depend only on data that is the same on
  // every rank (the first part of FinishedBackward and exchanged texts), not on what this rank
  // alone observed. An exception propagates out of backward after the other kinds of advice have
  // run; the gradients are reduced by then.
  virtual std::optional<Verdict> examine(FinishedBackward& backward) = 0;

  // The statistic that this advice needs, usually itself; it lives as long as the advice. Null: none.
  virtual Statistic* statistic() { return nullptr; }
};

// Called once for each reducer, on any thread.
using AdviceMaker = std::function<std::unique_ptr<Advice>()>;

// Registers advice, from a static object or in main before any module is wrapped. The programs of
// all ranks must register the same advice. Throws ValueError for a name that is taken or an empty
// maker.
struct AddAdvice {
  AddAdvice(const std::string& name, AdviceMaker make);
};

// All registered advice, by name.
const std::map<std::string, AdviceMaker>& all_advice();

struct NamedAdvice {
  std::string name;
  std::unique_ptr<Advice> advice;
};
// One instance of each kind, in the order of the names. Throws ValueError if a maker returns null.
std::vector<NamedAdvice> make_all_advice();
// Those that have one, in the same order; they live as long as `advice`.
std::vector<Statistic*> statistics_of(std::span<const NamedAdvice> advice);

}  // namespace brigade::dist
