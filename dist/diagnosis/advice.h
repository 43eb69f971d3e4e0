// Advice: what is said at the end of a backward whose gradients are sound, in warnings and notes
// that do not stop training.
//
// Each kind is a class in a file of its own, which makes itself known by a static object: those of
// Brigade stand in dist/diagnosis/kinds, yours in your program. A reducer owns one of each, and
// asks them after every backward that it reduces, in the order of their names.
#pragma once

#include <brigade/dist/diagnosis/finished_backward.h>
#include <brigade/dist/errors/verdict.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace brigade::dist {

class Advice {
 public:
  virtual ~Advice() = default;

  // Called on every rank, also where `diagnosis` finds nothing to look at: so the usual way has to
  // cost next to nothing. What it keeps between backwards (how often it has looked, what it has
  // said) are members.
  //
  // A verdict is kept, and a warning told, each time that one is returned: every rank has to return
  // the same. Its severity is Warning or Note; an error has to be found before gradients are used.
  //
  // exchange() is a collective: whether it is called may depend only on what all ranks have read
  // alike (the first part of FinishedBackward, and texts that were exchanged), not on what this
  // rank saw by itself. What is thrown leaves backward, after the others were asked; gradients are
  // reduced then.
  virtual std::optional<Verdict> examine(FinishedBackward& backward) = 0;
};

// Called once for each reducer, on any thread.
using AdviceMaker = std::function<std::unique_ptr<Advice>()>;

// Makes advice known, from a static object or in main before anything is wrapped; in the programs
// of all ranks alike. Throws ValueError for a name that is taken, and without a maker.
struct AddAdvice {
  AddAdvice(const std::string& name, AdviceMaker make);
};

// By name.
const std::map<std::string, AdviceMaker>& all_advice();

}  // namespace brigade::dist
