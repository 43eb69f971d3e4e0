// Detects buffers whose member was reassigned: the module tree and the wrapper hold the old tensor, which is
// broadcast and saved, while forward reads another one.
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace brigade::dist {

class StaleBuffers {
 public:
  // Called at the beginning of a recorded forward. `buffers`: those held by the wrapper, the same in every call.
  // Returns a buffer that had a further handle at the first call, that only the wrapper and the module tree hold now,
  // and that the latest forward has not read. Each buffer is returned once.
  std::optional<size_t> look_at(std::span<const Tensor> buffers);

 private:
  struct State {
    bool has_member = false;
    uint64_t alone_since = 0;  // tape position plus one; 0: another handle exists
  };
  std::vector<State> states_;  // by buffer
};

}  // namespace brigade::dist
