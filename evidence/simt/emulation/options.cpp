#include <simt/options.h>

#include "../runtime/scheduler.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>

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
    if (text == nullptr) return uint64_t{1};
    if (std::strcmp(text, "random") != 0) return static_cast<uint64_t>(std::strtoull(text, nullptr, 10));
    const uint64_t drawn = std::random_device{}();
    std::fprintf(stderr, "simt: SIMT_SEED=%llu draws these orders again\n", static_cast<unsigned long long>(drawn));
    return drawn;
  }();
  return seed;
}

Order default_order() {
  static const Order order = [] {
    const char* const text = std::getenv("SIMT_ORDER");
    if (text == nullptr) return Order::Forward;
    constexpr const char* kNames[] = {"forward", "reverse", "random", "warps"};
    for (int i = 0; i < 4; ++i) {
      if (std::strcmp(text, kNames[i]) == 0) return static_cast<Order>(i);
    }
    throw std::invalid_argument(std::string("simt: SIMT_ORDER is forward, reverse, random or warps, not ") + text);
  }();
  return order;
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
