// The known strategies, each with the options of DDP that it stands for.
#include <brigade/lab/strategy.h>

namespace brigade::lab {

const std::vector<std::string>& strategy_names() {
  static const std::vector<std::string> names{"ddp", "ddp_find_unused_parameters_true"};
  return names;
}

dist::DDPOptions strategy_options(const std::string& name) {
  dist::DDPOptions options;
  if (name == "ddp") return options;
  if (name == "ddp_find_unused_parameters_true") {
    options.find_unused_parameters = true;
    return options;
  }
  std::string known;
  for (const std::string& each : strategy_names())
    known += (known.empty() ? "" : ", ") + each;
  throw ValueError("unknown strategy '{}'; known are {}", name, known);
}

}  // namespace brigade::lab
