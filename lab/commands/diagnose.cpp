// brigade diagnose: planted faults and the verdicts on them.
#include <brigade/lab/commands/diagnose.h>

#include <brigade/core/device_runtime.h>
#include <brigade/lab/commands/commands.h>
#include <brigade/lab/data_path.h>
#include <brigade/lab/options.h>
#include <brigade/lab/rank_job.h>
#include <brigade/lab/results.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <iostream>
#include <memory>

namespace brigade::lab {

nlohmann::json diagnosis_row(const Fault& fault, const DiagnoseOptions& options, const Diagnosis& found) {
  nlohmann::json row{{"id", fault.id},
                     {"name", fault.name},
                     {"title", fault.title},
                     {"control", !fault.expected.detected},
                     {"ranks", options.ranks ? options.ranks : fault.ranks},
                     {"backend", options.backend},
                     {"device", options.device},
                     {"passed", found.passed},
                     {"skipped", found.skipped},
                     {"detected", found.detected},
                     {"in_time", nullptr},
                     {"hung", false},
                     {"seconds", found.seconds},
                     {"why_not", found.why_not},
                     {"verdicts", nlohmann::json::parse(to_json(found.verdicts))}};
  if (found.in_time) row["in_time"] = *found.in_time;
  return row;
}

namespace {

struct Arguments {
  std::vector<std::string> ids;
  bool list = false;
  bool all = false;
  bool source = false;
  DiagnoseOptions options;
  Results results;
};

void list_faults(Results& results) {
  for (const Fault& fault : all_faults()) {
    const bool control = !fault.expected.detected;
    std::cout << fmt::format("{:8} {:44} {}{}\n", fault.id, fault.name, fault.title,
                             control ? "  (control: must not be reported)" : "");
    results.add({{"id", fault.id}, {"name", fault.name}, {"title", fault.title}, {"control", control}});
  }
  results.write();
}

// A part of a source file.
struct SourceLines {
  size_t first = 1;  // number of the first line
  std::vector<std::string> lines;
};

// The fault's namespace in its file, and the comment above it.
SourceLines program_of(const Fault& fault) {
  std::ifstream in(source_path(fault.file));
  const std::string begin = fmt::format("namespace {} {{", fault.name);
  const std::string end = fmt::format("}}  // namespace {}", fault.name);
  SourceLines program;
  bool inside = false;
  size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    inside = inside || line == begin;
    // Before it, keep the comment that ends on the line above.
    if (!inside && !line.starts_with("//")) {
      program.lines.clear();
      continue;
    }
    if (program.lines.empty()) program.first = number;
    program.lines.push_back(line);
    if (line == end) return program;
  }
  throw ValueError("{} has no namespace {}", fault.file, fault.name);
}

// Prints the programs with line numbers, which verdicts refer to.
void show_sources(const std::vector<const Fault*>& chosen, Results& results) {
  for (const Fault* fault : chosen) {
    const SourceLines program = program_of(*fault);
    std::cout << fmt::format("\n{} {}\n{}\n\n", fault->id, fault->title, fault->file);
    std::string text;
    size_t number = program.first;
    for (const std::string& line : program.lines) {
      std::cout << fmt::format("{:>4}  {}\n", number++, line);
      text += line + "\n";
    }
    results.add({{"id", fault->id},
                 {"name", fault->name},
                 {"title", fault->title},
                 {"file", fault->file},
                 {"first_line", program.first},
                 {"source", text}});
  }
  results.write();
}

// Returns whether all faults that were not skipped came out as expected.
bool run_faults(const std::vector<const Fault*>& chosen, const DiagnoseOptions& options, Results& results) {
  int failures = 0;
  int skipped = 0;
  for (const Fault* fault : chosen) {
    const Diagnosis found = diagnose(*fault, options);
    std::cout << fmt::format("\n{} {}\n", fault->id, fault->title);
    if (found.detected) std::cout << found.text << "\n";
    if (found.skipped) {
      std::cout << "=> skipped: " << found.why_not << "\n";
      ++skipped;
    } else if (found.passed) {
      std::cout << (found.detected ? "=> as expected; with the advised fix the same steps run right\n"
                                   : "=> as expected: nothing to report\n");
    } else {
      std::cout << "=> NOT as expected: " << found.why_not << "\n";
      ++failures;
    }
    std::cout.flush();
    results.add(diagnosis_row(*fault, options, found));
  }
  std::cout << fmt::format("\n{} of {} as expected{}\n", chosen.size() - static_cast<size_t>(failures + skipped),
                           chosen.size(), skipped > 0 ? fmt::format(", {} skipped", skipped) : "");
  results.write();
  return failures == 0;
}

}  // namespace

void add_diagnose(Command& app) {
  auto given = std::make_shared<Arguments>();
  Command command = app.add_command("diagnose", "Run planted faults and print the verdicts");
  command.footer(
      "Examples:\n  brigade diagnose --list\n  brigade diagnose UNU-01 detach_between_gan_halves\n  brigade diagnose UNU-12 "
      "--source\n  brigade diagnose --all --ranks 4 --backend shm --json verdicts.json");
  command.add_option("id", given->ids, "faults to run: ids, or names");
  command.add_flag("--list", given->list, "list the faults");
  command.add_flag("--all", given->all, "run all of them");
  command.add_flag("--source", given->source, "show the programs and run none");
  command.add_option("--ranks", given->options.ranks, "number of ranks (default: 2, or what the fault needs)")
      .check(number_from(2, 64));
  command.add_option("--backend", given->options.backend, backends_in_words()).show_default();
  command
      .add_option("--device", given->options.device,
                  "where the ranks train: cpu, cuda (a device per rank where there are as many), auto")
      .show_default();
  command.add_option("--bucket-mb", given->options.bucket_mb, "cap of the buckets in MiB")
      .check(number_from(1e-6, 1e6))
      .show_default();
  given->results.add_json_option(command);
  command.action([given] {
    if (given->list) {
      given->results.begin();
      list_faults(given->results);
      return 0;
    }
    check_backend(given->options.backend);
    choose_device(given->options.device);  // throws here instead of on every rank
    std::vector<const Fault*> chosen;
    for (const std::string& id : given->ids)
      for (const Fault* fault : find_faults(id))
        chosen.push_back(fault);
    for (const Fault& fault : all_faults()) {
      if (given->all) chosen.push_back(&fault);
    }
    if (chosen.empty()) throw ValueError("diagnose: name at least one fault, or --all; --list shows them");
    given->results.begin();
    if (given->source) {
      show_sources(chosen, given->results);
      return 0;
    }
    return run_faults(chosen, given->options, given->results) ? 0 : 1;
  });
}

}  // namespace brigade::lab
