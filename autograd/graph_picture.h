// A picture of the graph behind a tensor: operations with their lines, leaves with their names,
// shapes along the arrows, and, where a tape is on (diagnosis, or autograd::Tape::enable()), the
// places where a path of gradients was cut.
#pragma once

#include <brigade/core/tensor_list.h>

#include <string>
#include <utility>
#include <vector>

namespace brigade::autograd {

struct PictureOptions {
  // Names of leaves, as from Module::named_parameters(). A parameter without one shows the name it
  // was registered under.
  std::vector<std::pair<std::string, Tensor>> names = {};
  bool locations = true;  // of the calls
};

// In the language of graphviz. Arrows point the way the values went. A root without history gives a
// picture of the cut that explains it, if the tape knows.
std::string to_dot(TensorList roots, const PictureOptions& options = {});

// Draws such a text as SVG by graphviz' program `dot`. Throws ValueError when that is missing or
// fails.
void write_svg(const std::string& dot, const std::string& path);

}  // namespace brigade::autograd
