// brigade explain: the bucket layout, the ready order and one iteration, in words, for a recipe or from a trace file;
// and what else can be done about a kind of verdict.
#include <brigade/core/atomic_file.h>
#include <brigade/core/error.h>
#include <brigade/lab/commands/commands.h>
#include <brigade/lab/json.h>
#include <brigade/lab/options.h>
#include <brigade/lab/rank_job.h>
#include <brigade/lab/recipes/recipe.h>
#include <brigade/lab/results.h>
#include <brigade/lab/trace_file.h>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <iostream>
#include <memory>

namespace brigade::lab {
namespace {

using nlohmann::json;

// Runs on one rank.
std::string trace_job(const dist::ProcessGroupPtr& group, const std::string& arguments) {
  const json given = json::parse(arguments);
  const Recipe& recipe = find_recipe(given.at("recipe"));
  if (!given.at("amp").get<bool>()) return short_trace(recipe, group, given.at("bucket_mb"));
  TrainOptions options = recipe.defaults;
  options.precision = "16-mixed";
  options.epochs = 3;
  options.trace_steps = 1000;
  options.progress = false;
  return recipe.train(group, options).trace;
}

constexpr const char* kTraceJob = "explain";
const AddRankJob add_trace_job(kTraceJob, &trace_job);

std::string trace_of_recipe(const std::string& recipe, const std::string& backend, int ranks, double bucket_mb,
                            bool amp, const std::string& trace_file) {
  const json arguments{{"recipe", recipe}, {"bucket_mb", bucket_mb}, {"amp", amp}};
  const RankJobOutcome outcome = run_rank_job(kTraceJob, arguments.dump(), backend, ranks);
  require_ok(outcome);
  if (!trace_file.empty()) write_file(trace_file, outcome.ranks[0].text);
  return outcome.ranks[0].text;
}

// A row of "results": the section "brigade" of the trace, and the events.
json row_of(json trace) {
  if (trace.contains("results")) return trace.at("results").at(0);
  json row = std::move(trace.at("brigade"));
  row["traceEvents"] = std::move(trace.at("traceEvents"));
  return row;
}

// Whether the word cannot be a recipe.
bool names_file(const std::string& word) {
  std::error_code error;
  return word.find_first_of("./") != std::string::npos || std::filesystem::exists(word, error);
}

}  // namespace

void add_explain(Command& app) {
  struct Arguments {
    std::string what;
    std::string backend = "shm";
    int ranks = 2;
    double bucket_mb = 0.02;
    bool amp = false;
    std::string trace_file;
    Results results;
  };
  auto given = std::make_shared<Arguments>();
  Command command =
      app.add_command("explain", "Tell in words how gradients travel, or what to do about a kind of verdict");
  command.footer(
      "Examples:\n  brigade explain digits\n  brigade explain unused_parameters\n  brigade explain digits --bucket-mb 25 --trace trace.json\n  brigade "
      "explain trace.json\n  brigade explain digits --amp\n  brigade explain digits --json digits.json\n  brigade explain digits.json\nA trace opens "
      "in https://ui.perfetto.dev and chrome://tracing.");
  command
      .add_option("what", given->what,
                  "a recipe (" + recipe_names() +
                      "), a file that --trace or --json has written, or a kind of verdict (unused_parameters)")
      .required();
  command.add_option("--ranks", given->ranks, "number of ranks").check(number_from(1, 64)).show_default();
  command.add_option("--backend", given->backend, backends_in_words()).show_default();
  const Option bucket_mb =
      command
          .add_option("--bucket-mb", given->bucket_mb, "cap of the buckets in MiB (small, so that there are several)")
          .check(number_from(1e-6, 1e6))
          .show_default();
  command.add_flag("--amp", given->amp,
                   "tell what the loss scaler did: over three epochs of the recipe in 16-mixed, or in a trace");
  command.add_option("--trace", given->trace_file, "write the trace of the recipe to a file");
  given->results.add_json_option(command);
  command.action([given, bucket_mb] {
    const bool recipe = is_recipe(given->what);
    if (const std::string_view more = more_about(given->what); !recipe && !more.empty()) {
      given->results.begin();
      std::cout << more << "\n";
      if (given->results.are_wanted()) given->results.add({{"kind", given->what}, {"text", more}});
      given->results.write();
      return 0;
    }
    if (!recipe && !names_file(given->what))
      throw ValueError("explain: '{}' is neither a recipe ({}), nor a kind of verdict, nor a file", given->what,
                       recipe_names());
    if (!recipe && !given->trace_file.empty())
      throw ValueError("explain: --trace writes the trace of a recipe; {} is a file", given->what);
    if (recipe && given->amp && bucket_mb.is_given())
      throw ValueError("explain: --amp trains the recipe with its own buckets; leave out --bucket-mb");
    check_backend(given->backend);
    check_output(given->trace_file);
    given->results.begin();
    const std::string text = recipe ? trace_of_recipe(given->what, given->backend, given->ranks, given->bucket_mb,
                                                      given->amp, given->trace_file)
                                    : "";
    const Trace trace = recipe ? trace_of_text(text) : read_trace("explain", given->what);
    try {
      std::cout << (given->amp ? scaler_history_in_words(trace) : trace_in_words(trace));
    } catch (const json::exception& error) {
      throw ValueError("explain: {} lacks something that a trace of Brigade has: {}", given->what, error.what());
    }
    if (given->results.are_wanted())
      given->results.add(row_of(recipe ? json::parse(text) : read_json("explain", given->what)));
    given->results.write();
    return 0;
  });
}

}  // namespace brigade::lab
