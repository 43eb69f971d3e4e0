// The known strategies, each with the options of DDP that it stands for.
#include <brigade/lab/strategy.h>

#include <algorithm>

namespace brigade::lab {

const std::vector<std::string>& strategy_names() {
  static const std::vector<std::string> names{"ddp", "ddp_find_unused_parameters_true"};
  return names;
}

dist::DDPOptions strategy_options(const std::string& name, double bucket_mb) {
  dist::DDPOptions options;
  if (bucket_mb > 0) {
    options.bucket_cap_mb = bucket_mb;
    options.first_bucket_mb = std::min(options.first_bucket_mb, bucket_mb);
  }
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
