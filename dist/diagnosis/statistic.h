// Statistics: words that belong to advice (advice.h), which decides from them whether a closer look is worth an exchange.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/core/place.h>
#include <brigade/dist/reducer/words.h>

#include <cstdint>

namespace brigade::dist {

// The number of backwards that this rank's gradients still hold, and the latest of them.
struct KeptBackwards {
  int64_t count = 0;
  Place at;
};

// What a rank knows when a backward that it reduces begins.
struct StartedBackward {
  uint64_t number = 0;                   // from 1, the same on every rank
  const autograd::Plan* plan = nullptr;  // null if this rank takes part without a sound backward of its own
  int64_t rows = 0;                      // samples in the batch, 0 if not known
  int64_t gathered = 1;                  // backwards summed up in the gradients: this and earlier ones
  // The earlier ones among them that were already averaged, and since then neither cleared nor used by a step.
  KeptBackwards kept = {};
};

class Statistic : public SentWord {
 public:
  using Kind = WordKind;
  // Called when a backward begins that this rank reduces, before any bucket is sent.
  virtual void begin(const StartedBackward& backward) = 0;
};

}  // namespace brigade::dist
