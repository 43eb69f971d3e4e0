// Chooses the best instruction set that the processor has, or the one that BRIGADE_CPU names.
#include <brigade/kernels/kernel.h>

#include <brigade/kernels/cpu/vector/targets.h>

#include <hwy/highway.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace brigade::kernels {
namespace {

struct Level {
  std::string_view name;
  int64_t target;
};

// The baseline of the architecture, unless the whole build targets a better instruction set.
#if HWY_ARCH_X86
constexpr int64_t kBaseline = HWY_STATIC_TARGET > HWY_SSE4 ? HWY_STATIC_TARGET : 0;
#else
constexpr int64_t kBaseline = HWY_STATIC_TARGET;
#endif

// Best first; a lower bit is a better instruction set.
constexpr Level kLevels[] = {
#if HWY_ARCH_X86
    {"x86-64-v4", HWY_AVX3},
    {"x86-64-v3", HWY_AVX2},
    {"x86-64-v2", HWY_SSE4},
    {"x86-64", kBaseline},
#elif HWY_ARCH_ARM
    {"neon", kBaseline},
#else
    {"portable", kBaseline},
#endif
};

// Whether the program contains code for this level and the processor supports it.
bool is_available(const Level& level) {
  return (HWY_TARGETS & level.target) != 0 &&
         (level.target == HWY_STATIC_TARGET || (hwy::SupportedTargets() & level.target) != 0);
}

std::string available_names() {
  std::string names;
  for (const Level& level : kLevels) {
    if (is_available(level)) names += (names.empty() ? "" : ", ") + std::string(level.name);
  }
  return names;
}

std::string_view choose() {
  const char* const wanted = std::getenv("BRIGADE_CPU");
  const bool is_free = !wanted || !*wanted;
  for (const Level& level : kLevels) {
    if (!is_available(level) || (!is_free && level.name != wanted)) continue;
    hwy::DisableTargets(level.target - 1);  // better ones
    // Set the dispatch target explicitly: SupportedTargets() of Highway 1.0 sets it without regard to disabled targets.
    const int64_t supported = hwy::SupportedTargets();
    hwy::GetChosenTarget().Update(supported);
    return level.name;
  }
  std::fprintf(stderr,
               "BRIGADE_CPU: expected an instruction set that this processor and this build have (%s), got '%s'; "
               "choose one of them, or unset the variable\n",
               available_names().c_str(), wanted);
  std::_Exit(2);
}

}  // namespace

std::string_view instruction_set() {
  static const std::string_view chosen = choose();
  return chosen;
}

bool cpu::limit_instruction_set() { return !instruction_set().empty(); }

}  // namespace brigade::kernels
