#include <simt/options.h>

#include "../runtime/scheduler.h"

#include <cstdlib>
#include <stdexcept>

namespace simt {

namespace {
Options& current_options() {
  static Options value;
  return value;
}
}  // namespace

uint64_t default_seed() {
  static const uint64_t seed = [] {
    const char* text = std::getenv("SIMT_SEED");
    return text == nullptr ? uint64_t{1} : static_cast<uint64_t>(std::strtoull(text, nullptr, 10));
  }();
  return seed;
}

const Options& options() { return current_options(); }

void set_options(const Options& options) {
  if (options.workers < 1) throw std::invalid_argument("simt: expected at least one worker");
  if (options.stack_bytes < (size_t{16} << 10))
    throw std::invalid_argument("simt: expected a stack of at least 16 KiB");
  current_options() = options;
  runtime::seed(options.seed);
}

}  // namespace simt
