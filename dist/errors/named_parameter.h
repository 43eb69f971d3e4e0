// A parameter with the name that it has in its module, and the backwards that used it.
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace brigade::dist {

// --- A parameter with the name that it has in its module.

struct NamedParameter {
  std::string name;
  Tensor tensor;
  const char* module_type = "";  // of the module that holds it, as on the tape ("Linear"); "" if unknown
};

// --- The reduced backwards in which this rank has used a parameter, as a few ranges of their numbers.

class UseHistory {
 public:
  // Numbers must increase.
  void add(uint64_t backward);
  // "used in backwards 1 to 3 and 7 to 9, not in 4 to 6 and since 10", from the view of `backward`, in which the
  // parameter is not used; `verb` is "used". "" if there was no use.
  std::string in_words(uint64_t backward) const;

 private:
  static constexpr size_t kRanges = 3;  // the latest

  std::vector<std::pair<uint64_t, uint64_t>> ranges_;  // first and last, oldest first
  bool has_forgotten_ = false;
};

}  // namespace brigade::dist
