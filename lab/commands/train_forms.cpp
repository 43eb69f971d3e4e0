// Lists and compares the forms of a recipe: `brigade train --list` and `--compare`.
#include <brigade/lab/commands/train.h>

#include <brigade/lab/json.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>

namespace brigade::lab {
namespace {

using nlohmann::json;

std::string in_words(const ExpectedVerdict& verdict) {
  return verdict.cause.empty() ? verdict.kind : fmt::format("{} ({})", verdict.kind, verdict.cause);
}

json to_json(const ExpectedVerdict& verdict) {
  if (verdict.kind.empty()) return nullptr;
  return {{"kind", verdict.kind}, {"cause", verdict.cause}};
}

std::string warning_of(const Form& form) { return form.warning.empty() ? "" : "; warns: " + form.warning; }

std::string equal_or_not(bool equal) { return equal ? "equal" : "DIFFERENT"; }

// What a completed run should have done instead.
std::string what_was(const Form& form) {
  if (!form.is_right()) return ": it should end in " + in_words(form.verdict);
  return form.warning.empty() ? ": replicas differ" : ": it should warn of " + form.warning;
}

std::string line_of(const Recipe& recipe, const Form& form, const TrainRanks& ranks, const FormOutcome& outcome) {
  const TrainResult& result = outcome.result;
  if (!outcome.error.ok)
    return fmt::format("{:<26} {:>9} {:>11} {:>10} {:>9}  {:<10} {}{}", form.name, "-", "-", "-", "-", "-",
                       outcome.in_words(), outcome.expected ? ", as expected" : ", NOT expected");
  const std::string sent = result.bytes_per_step < 0 ? "-" : fmt::format("{:.1f}", result.bytes_per_step / 1024);
  // Ranks that are threads share one peak-memory counter.
  const std::string peak =
      ranks.backend == "threads" ? "-" : fmt::format("{:.1f}", result.peak_bytes / (1024.0 * 1024.0));
  return fmt::format("{:<26} {:>9.3f} {:>11.2f} {:>10} {:>9}  {:<10} {}{}", form.name, median(result.step_ms),
                     result.collectives_per_step, sent, peak, equal_or_not(result.gradients_equal),
                     recipe.metrics_in_words(result), outcome.expected ? "" : ", NOT expected" + what_was(form));
}

}  // namespace

std::string FormOutcome::in_words() const {
  return error.verdict.empty() ? error.error : lab::in_words(ExpectedVerdict{error.verdict, error.cause});
}

void list_recipes(Results& results) {
  for (const Recipe* recipe : all_recipes()) {
    std::cout << fmt::format("{:<26} {} (without options: --epochs {} --batch {} --lr {} --precision {})\n",
                             recipe->name, recipe->about, recipe->defaults.epochs, recipe->defaults.global_batch,
                             recipe->defaults.lr, recipe->defaults.precision);
    for (const Form& form : recipe->forms) {
      json row{{"recipe", recipe->name},           {"form", form.name},       {"about", form.about},
               {"verdict", to_json(form.verdict)}, {"warning", form.warning}, {"fault", form.fault}};
      results.add(std::move(row));
      if (recipe->forms.size() == 1) continue;
      const std::string end = form.is_right() ? warning_of(form) : "; fails: " + in_words(form.verdict);
      const std::string fault = form.fault.empty() ? "" : ", " + form.fault;
      std::cout << fmt::format("  {:<26} {}{}{}\n", form.name, form.about, end, fault);
    }
  }
  results.write();
}

bool compare_forms(const Recipe& recipe, const TrainRanks& ranks, const TrainOptions& options, Results& results) {
  std::cout << fmt::format("{} on {} ranks ({}): medians over the steps, traffic of a rank\n", recipe.name, ranks.ranks,
                           ranks.backend);
  std::cout << fmt::format("{:<26} {:>9} {:>11} {:>10} {:>9}  {:<10} {}\n", "form", "step ms", "collectives",
                           "KiB/step", "peak MiB", "gradients", "result");
  bool all_as_expected = true;
  for (const Form& form : recipe.forms) {
    const FormOutcome outcome = run_form(recipe, form, ranks, options);
    all_as_expected = all_as_expected && outcome.expected;
    std::cout << line_of(recipe, form, ranks, outcome) << "\n" << std::flush;
    TrainOptions chosen = options;
    chosen.form = form.name;
    json row = train_row(recipe, ranks.ranks, ranks.backend, chosen, outcome.result);
    row["expected_verdict"] = to_json(form.verdict);
    row["verdict"] = to_json({outcome.error.verdict, outcome.error.cause});
    row["error"] = outcome.error.ok ? "" : outcome.error.text;
    row["as_expected"] = outcome.expected;
    results.add(std::move(row));
  }
  results.write();
  return all_as_expected;
}

}  // namespace brigade::lab
