// The modes of training that `brigade bench ddp` compares.
#include <brigade/lab/bench/ddp/replica.h>

#include <brigade/core/error.h>
#include <brigade/dist/comm_hooks/comm_hook.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace brigade::lab::bench {
namespace {

const std::vector<Mode>& all_modes() {
  static const std::vector<Mode> modes{
      {.name = "local", .about = "no DDP and no communication, all ranks at once", .wrapped = false},
      {.name = "strict", .about = "DDP as it is by default"},
      {.name = "find_unused",
       .about = "find_unused_parameters, all of them used",
       .options = {.find_unused_parameters = true}},
      {.name = "unused10",
       .about = "the same with a tenth of parameters more, which are never used",
       .options = {.find_unused_parameters = true},
       .unused_tenth = true},
      {.name = "static_graph", .about = "static_graph", .options = {.static_graph = true}},
      {.name = "copies",
       .about = "gradient_as_bucket_view off: gradients are copied in and out",
       .options = {.gradient_as_bucket_view = false}},
      {.name = "no_sync4",
       .about = "four micro-batches, three of them under no_sync; the time is of one",
       .micro_batches = 4},
      {.name = "diagnosis_off",
       .about = "without tape, without a look at the numbers, without agreement on steps",
       .options = {.diagnosis = false, .check_steps = false}},
      {.name = "noop",
       .about = "a hook that sends nothing: what the reducer itself costs",
       .hook = &dist::noop_hook,
       .stays_local = true},
      {.name = "fp16_compress", .about = "gradients travel in float16", .hook = &dist::fp16_compress_hook},
      {.name = "bf16_compress", .about = "gradients travel in bfloat16", .hook = &dist::bf16_compress_hook},
      {.name = "float16", .about = "parameters and batch in float16", .dtype = DType::Float16},
      {.name = "bfloat16", .about = "parameters and batch in bfloat16", .dtype = DType::BFloat16},
      {.name = "graph", .about = "the whole step as one CUDA graph (--device cuda)", .captured = true},
  };
  return modes;
}

// "cap0.25": gradients in buckets of 0.25 MiB; "capinf": in one.
bool read_cap(const std::string& name, double& cap) {
  if (!name.starts_with("cap")) return false;
  const std::string number = name.substr(3);
  size_t read = 0;
  try {
    cap = std::stod(number, &read);
  } catch (const std::exception&) {
    return false;
  }
  return read == number.size() && cap > 0;
}

}  // namespace

Mode find_mode(const std::string& name) {
  for (const Mode& mode : all_modes()) {
    if (mode.name == name) return mode;
  }
  double cap = 0;
  if (!read_cap(name, cap)) throw ValueError("unknown mode '{}'; known are\n{}", name, modes_in_words());
  // The first bucket is small, so that communication begins early, unless a single bucket is requested.
  const double first = std::isinf(cap) ? cap : std::min(cap, dist::DDPOptions{}.first_bucket_mb);
  return {.name = name,
          .about = fmt::format("buckets of {:g} MiB", cap),
          .options = {.bucket_cap_mb = cap, .first_bucket_mb = first}};
}

void check_runs_on(const Mode& mode, DeviceType device) {
  if (mode.captured && device == DeviceType::CPU)
    throw ValueError("mode '{}' is a CUDA graph, which the CPU has none of; give --device cuda", mode.name);
}

std::string modes_in_words() {
  std::string text;
  for (const Mode& mode : all_modes())
    text += fmt::format("  {:<14} {}\n", mode.name, mode.about);
  return text + "  cap1, cap0.25  bucket_cap_mb, any number of MiB (capinf: one bucket)\n";
}

}  // namespace brigade::lab::bench
