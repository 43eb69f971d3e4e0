// Writes and reads checkpoints of recipes, and refuses those of other jobs.
#include <brigade/lab/recipes/training.h>

#include <brigade/amp/autocast.h>

#include <fmt/format.h>

#include <algorithm>

namespace brigade::lab {
namespace {

// Parameters of another dtype are refused by themselves; this is what forward computes in.
DType dtype_of_forward(const TrainOptions& options) {
  const amp::Precision& precision = amp::find_precision(options.precision);
  return precision.autocast.value_or(precision.parameters);
}

// A file may say anything.
std::string dtype_in_words(double number) {
  const bool is_known = number >= 0 && number <= static_cast<double>(DType::Bool);
  return is_known ? name(static_cast<DType>(number)) : fmt::format("dtype number {}, which is none", number);
}

}  // namespace

Progress::Progress(const TrainOptions& options, optim::Checkpoint begin)
    : checkpoint(std::move(begin)), options_(options) {
  checkpoint.number("steps", steps);
  // In front of what a recipe adds: a file of another job is told by its options, not by what follows from them.
  checkpoint.part(
      "options", [this] { return options_of_job(); },
      [this](const optim::OptimizerState& saved) { must_be_of_job(saved); });
}

optim::OptimizerState Progress::options_of_job() const {
  return {"options",
          {},
          {{"seed", static_cast<double>(options_.seed)},
           {"batch", static_cast<double>(options_.global_batch)},
           {"computed_in", static_cast<double>(dtype_of_forward(options_))}}};
}

void Progress::must_be_of_job(const optim::OptimizerState& saved) const {
  const std::vector<std::pair<std::string, double>> job = options_of_job().numbers;
  for (const auto& [option, given] : job) {
    const auto found = std::ranges::find_if(saved.numbers, [&](const auto& each) { return each.first == option; });
    if (found == saved.numbers.end())
      throw ValueError("the number \"{}\" is missing; it is no file of this program", option);
    if (found->second == given) continue;
    if (option == "computed_in")
      throw ValueError("it was written by a training in {}, and --precision {} computes in {}",
                       dtype_in_words(found->second), options_.precision, dtype_in_words(given));
    throw ValueError("it was written with --{} {}, and this is {}; a training goes on as it began", option,
                     found->second, given);
  }
}

void Progress::resume(int64_t all) {
  if (options_.resume.empty()) return;
  checkpoint.load(options_.resume);
  if (steps >= all) {
    throw ValueError("{} was written after {} steps, and this training has {}: there is nothing left to do",
                     options_.resume, steps, all);
  }
}

void Progress::save(const dist::ProcessGroup& group, int64_t per_epoch, int64_t all) const {
  if (options_.checkpoint.empty() || group.rank() != 0) return;
  const bool within_epoch = options_.save_every > 0 && steps % options_.save_every == 0;
  if (steps % per_epoch == 0 || within_epoch || steps == all) checkpoint.save(options_.checkpoint);
}

}  // namespace brigade::lab
