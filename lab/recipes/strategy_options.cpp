// A strategy's options, with buckets of another size.
#include <brigade/lab/recipes/strategy_options.h>

#include <brigade/dist/fabric/strategy.h>

#include <algorithm>

namespace brigade::lab {

dist::DDPOptions strategy_options(const std::string& name, double bucket_mb) {
  dist::DDPOptions options = dist::Strategy(name).options();
  if (bucket_mb > 0) {
    options.bucket_cap_mb = bucket_mb;
    options.first_bucket_mb = std::min(options.first_bucket_mb, bucket_mb);
  }
  return options;
}

}  // namespace brigade::lab
