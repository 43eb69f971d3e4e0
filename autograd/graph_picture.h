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
  // Names of leaves, as from Module::named_parameters(). A parameter that is not listed shows the name it was
  // registered under.
  std::vector<std::pair<std::string, Tensor>> names = {};
  bool locations = true;  // show the lines of the calls
};

// Returns a graph in the DOT language. Arrows point in the direction of forward. A root without history gives a picture
// of the cut that explains it, if the tape knows.
std::string to_dot(TensorList roots, const PictureOptions& options = {});

// Renders DOT text as SVG with Graphviz' program `dot`. Throws ValueError when `dot` is missing or fails.
void write_svg(const std::string& dot, const std::string& path);

}  // namespace brigade::autograd
