// brigade demo: a real training job on two ranks, then the two classic failures, each explained and
// repaired.
#include <brigade/lab/commands/commands.h>
#include <brigade/lab/commands/diagnose.h>
#include <brigade/lab/commands/train.h>
#include <brigade/lab/options.h>
#include <brigade/lab/rank_job.h>
#include <brigade/lab/results.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace brigade::lab {
namespace {

constexpr double kWantedAccuracy = 0.97;

void heading(const std::string& text) { std::cout << "\n== " << text << "\n" << std::flush; }

// Shows one fault. Returns true when the verdict was as expected and the fix worked.
bool show_fault(const std::string& id, const std::string& backend, Results& results) {
  const Fault& fault = find_fault(id);
  heading("planted fault " + fault.id + ": " + fault.title);
  const DiagnoseOptions options{.backend = backend, .ranks = 2};
  const Diagnosis found = diagnose(fault, options);
  results.add(diagnosis_row(fault, options, found));
  std::cout << "every rank raised:\n\n" << found.text << "\n\n";
  if (!found.passed) {
    std::cout << "NOT as expected: " << found.why_not << "\n";
    return false;
  }
  std::cout << "the same steps with find_unused_parameters=true: no error, parameters identical on both ranks\n";
  return true;
}

}  // namespace

void add_demo(Command& app) {
  struct Arguments {
    std::string backend = "shm";
    TrainOptions options;
    bool quiet = false;
    Results results;
  };
  auto given = std::make_shared<Arguments>();
  Command demo = app.add_command("demo", "Train digits on two ranks, then show and explain two classic failures");
  demo.footer("Example:\n  brigade demo");
  demo.add_option("--backend", given->backend, backends_in_words()).show_default();
  demo.add_option("--epochs", given->options.epochs, "passes over the data").check(number_from(1)).show_default();
  demo.add_flag("--quiet", given->quiet, "no progress bar");
  given->results.add_json_option(demo);
  demo.action([given] {
    check_backend(given->backend);
    given->results.begin();
    heading("a small convolutional network learns 1,438 handwritten digits on 2 ranks (" + given->backend + ")");
    given->options.progress = !given->quiet;
    const Recipe& recipe = find_recipe("digits");
    const TrainResult result = run_recipe(recipe, given->backend, 2, given->options);
    const double accuracy = result.metrics.at("accuracy");
    given->results.add(train_row(recipe, 2, given->backend, given->options, result));
    std::cout << fmt::format("loss {:.4f} -> {:.4f} in {} steps, {:.1f} s\n", result.loss.front(), result.loss.back(),
                             result.loss.size(), result.seconds);
    std::cout << fmt::format("accuracy on 359 held-out digits: {:.2f} %\n", 100 * accuracy);
    std::cout << fmt::format("parameters on the two ranks: {}\n",
                             result.parameters_equal ? "identical, bit for bit" : "DIFFERENT");
    bool good = result.parameters_equal && accuracy >= kWantedAccuracy;
    if (accuracy < kWantedAccuracy) std::cout << fmt::format("expected at least {:.0f} %\n", 100 * kWantedAccuracy);
    good = show_fault("UNU-01", given->backend, given->results) && good;
    good = show_fault("UNU-12", given->backend, given->results) && good;
    heading(good ? "all as expected" : "NOT all as expected");
    std::cout
        << "\nWhat next (each command has --help):\n"
           "  brigade diagnose UNU-12 --source      the program of the second failure, with the lines that its verdict names\n"
           "  brigade diagnose --list               the other planted failures\n"
           "  brigade train gan --form failing      the same failure in a whole training; --compare runs the forms that train as well\n"
           "  brigade explain digits                buckets, ready order and one iteration in words\n"
           "  brigade run -n 2 ./program            a program of your own: README.md has one to copy\n";
    given->results.write();
    return good ? 0 : 1;
  });
}

}  // namespace brigade::lab
