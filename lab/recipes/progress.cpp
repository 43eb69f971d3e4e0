// Writes and reads checkpoints of recipes, and refuses those of other jobs.
#include <brigade/lab/recipes/progress.h>

#include <brigade/amp/precision.h>

#include <fmt/format.h>

namespace brigade::lab {

namespace {

int64_t dtype_of_forward(const TrainOptions& options) {
  const amp::Precision& precision = amp::find_precision(options.precision);
  return static_cast<int64_t>(precision.autocast.value_or(precision.parameters));
}

// A file may say anything.
std::string dtype_in_words(int64_t number) {
  const bool is_known = number >= 0 && number <= static_cast<int64_t>(DType::Bool);
  return is_known ? name(static_cast<DType>(number)) : fmt::format("dtype number {}, which is none", number);
}

}  // namespace

Progress::Progress(const TrainOptions& options, optim::Checkpoint begin)
    : checkpoint(std::move(begin)),
      options_(options),
      seed_(static_cast<int64_t>(options.seed)),
      global_batch_(options.global_batch),
      computed_in_(dtype_of_forward(options)) {
  checkpoint.number("steps", steps).number("seed", seed_).number("batch", global_batch_);
  checkpoint.number("computed_in", computed_in_);
}

void Progress::must_be(const char* option, int64_t saved, int64_t given) const {
  if (saved == given) return;
  throw ValueError("{} was written with {} {}, and this is {}; a training goes on as it began", options_.resume, option,
                   saved, given);
}

void Progress::resume(int64_t all) {
  if (options_.resume.empty()) return;
  checkpoint.load(options_.resume);
  must_be("--seed", seed_, static_cast<int64_t>(options_.seed));
  must_be("--batch", global_batch_, options_.global_batch);
  if (computed_in_ != dtype_of_forward(options_)) {
    throw ValueError("{} was written by a training in {}, and --precision {} computes in {}", options_.resume,
                     dtype_in_words(computed_in_), options_.precision, dtype_in_words(dtype_of_forward(options_)));
  }
  if (steps >= all) {
    throw ValueError("{} was written after {} steps, and this training has {}: there is nothing left to do",
                     options_.resume, steps, all);
  }
}

void Progress::save(const dist::ProcessGroup& group, int64_t per_epoch, int64_t all) const {
  if (options_.checkpoint.empty() || group.rank() != 0) return;
  if (steps % per_epoch == 0 || steps == all) checkpoint.save(options_.checkpoint);
}

}  // namespace brigade::lab
