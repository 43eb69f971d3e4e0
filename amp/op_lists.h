// The lists of autocast: what happens to the inputs of each operation, by device type.
//
// They are PyTorch's (a test compares them with tests/amp/data/torch_op_lists.json). An unlisted
// operation takes its inputs as they are; an operation that is composed of others, such as
// normalize, follows its parts.
#pragma once

#include <brigade/autograd/autocast_mode.h>
#include <brigade/core/device.h>

#include <span>
#include <string>

namespace brigade::amp {

using autograd::CastRule;

// An operation of the lists.
struct ListedOperation {
  const char* name;   // in Brigade
  const char* torch;  // in PyTorch, where the rule comes from; several are written "mm, addmm"
  CastRule cpu, cuda;
  const char* why;  // "" unless the rule is not simply PyTorch's of that name

  CastRule rule(DeviceType device) const noexcept { return device == kCPU ? cpu : cuda; }
};

// All listed operations, by rule, then by name.
std::span<const ListedOperation> op_lists() noexcept;
// CastRule::Unlisted for a name that is not listed.
CastRule cast_rule(const char* operation, DeviceType device) noexcept;
// "lower precision", "float32", "widest", "refused", "as it is", "not listed".
const char* name(CastRule rule) noexcept;

}  // namespace brigade::amp
