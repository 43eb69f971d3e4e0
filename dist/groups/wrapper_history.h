// The wrappers of one group, which the ranks make in the same order: what tells those of one class
// apart.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace brigade::dist {

class WrapperHistory {
 public:
  // "DDP(Net)", then "DDP(Net)#2", "DDP(Net)#3": of the next wrapper of a module of this name.
  std::string next_title(const std::string& module);

  // Two wrappers that two ranks have made in another order.
  struct Swapped {
    std::string earlier, later;  // their titles
    int rank, other;             // `rank` makes now what `other` made earlier
  };
  // `lines`: where each rank has made the wrapper of which next_title() was the last. Ranks may make
  // one wrapper at different lines (in the branches of an if); but not one at the line of another.
  std::optional<Swapped> add(const std::string& module, std::vector<std::string> lines);

 private:
  std::map<std::string, int> made_;
  std::map<std::string, std::vector<std::vector<std::string>>> lines_;  // by module, wrapper and rank
};

}  // namespace brigade::dist
