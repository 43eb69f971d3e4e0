// Buffers whose member was assigned anew: the module tree and the wrapper hold the old tensor, which is broadcast and saved,
// and forward reads another one.
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace brigade::dist {

class StaleBuffers {
 public:
  // At the beginning of a forward that is recorded. `buffers`: those that the wrapper holds, the same every time.
  // A buffer that somebody besides wrapper and module tree had held when it was looked at first, that nobody else holds
  // since, and that the latest forward has not read. Once each.
  std::optional<size_t> look_at(std::span<const Tensor> buffers);

 private:
  struct State {
    bool has_member = false;
    uint64_t alone_since = 0;  // a position on the tape, and one more; 0: it is not
  };
  std::vector<State> states_;  // by buffer
};

}  // namespace brigade::dist
