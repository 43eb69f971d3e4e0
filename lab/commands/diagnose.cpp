// brigade diagnose: planted faults and the verdicts on them.
#include <brigade/lab/commands/commands.h>
#include <brigade/lab/faults/diagnosis.h>
#include <brigade/lab/json_output.h>
#include <brigade/lab/rank_job.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace brigade::lab {

void add_diagnose(CLI::App& app, int& exit_code) {
  struct Arguments {
    std::vector<std::string> ids;
    bool list = false;
    bool all = false;
    DiagnoseOptions options;
    std::string json_file;
  };
  auto given = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("diagnose", "Run planted faults and print the verdicts");
  command->footer(
      "Examples:\n  brigade diagnose --list\n  brigade diagnose UNU-01 UNU-12\n  brigade diagnose --all --ranks 4 "
      "--backend shm --json verdicts.json");
  command->add_option("id", given->ids, "faults to run");
  command->add_flag("--list", given->list, "list the faults");
  command->add_flag("--all", given->all, "run all of them");
  command->add_option("--ranks", given->options.ranks, "number of ranks (default: 2, or what the fault needs)")
      ->check(CLI::Range(2, 64));
  command->add_option("--backend", given->options.backend, "threads, shm or gloo")->capture_default_str();
  command->add_option("--bucket-mb", given->options.bucket_mb, "cap of the buckets in MiB")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--json", given->json_file, "write the results as JSON to a file (- for standard output)");
  command->callback([given, &exit_code] {
    if (given->list) {
      for (const Fault& fault : all_faults())
        std::cout << fmt::format("{:8} {}{}\n", fault.id, fault.title,
                                 fault.expected.detected ? "" : "  (control: must not be reported)");
      return;
    }
    check_backend(given->options.backend);
    std::vector<const Fault*> chosen;
    for (const std::string& id : given->ids)
      chosen.push_back(&find_fault(id));
    for (const Fault& fault : all_faults()) {
      if (given->all) chosen.push_back(&fault);
    }
    if (chosen.empty()) throw ValueError("diagnose: name at least one fault, or --all; --list shows them");
    nlohmann::json output = json_envelope(command_line());
    check_writable(given->json_file);
    std::ostream& report = given->json_file == "-" ? std::cerr : std::cout;
    int failures = 0;
    int skipped = 0;
    for (const Fault* fault : chosen) {
      const Diagnosis found = diagnose(*fault, given->options);
      report << fmt::format("\n{} {}\n", fault->id, fault->title);
      if (found.detected) report << found.text << "\n";
      if (found.skipped) {
        report << "=> skipped: " << found.why_not << "\n";
        ++skipped;
      } else if (found.passed) {
        report << (found.detected ? "=> as expected; with the advised fix the same steps run right\n"
                                  : "=> as expected: nothing to report\n");
      } else {
        report << "=> NOT as expected: " << found.why_not << "\n";
        ++failures;
      }
      report.flush();
      nlohmann::json row{{"id", fault->id},
                         {"title", fault->title},
                         {"control", !fault->expected.detected},
                         {"ranks", given->options.ranks ? given->options.ranks : fault->ranks},
                         {"backend", given->options.backend},
                         {"passed", found.passed},
                         {"skipped", found.skipped},
                         {"detected", found.detected},
                         {"in_time", nullptr},
                         {"hung", false},
                         {"seconds", found.seconds},
                         {"why_not", found.why_not},
                         {"verdicts", nlohmann::json::parse(to_json(found.verdicts))}};
      if (found.in_time) row["in_time"] = *found.in_time;
      output["results"].push_back(std::move(row));
    }
    report << fmt::format("\n{} of {} as expected{}\n", chosen.size() - static_cast<size_t>(failures + skipped),
                          chosen.size(), skipped > 0 ? fmt::format(", {} skipped", skipped) : "");
    if (!given->json_file.empty()) write_json(given->json_file, output);
    exit_code = failures == 0 ? 0 : 1;
  });
}

}  // namespace brigade::lab
