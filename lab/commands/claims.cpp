// brigade claims: runs popular advice that is wrong, next to what is right.
#include <brigade/lab/claims/claim.h>
#include <brigade/lab/commands/commands.h>
#include <brigade/lab/results.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace brigade::lab {
namespace {

using nlohmann::json;

// Runs the trials in order, prints a line or two for each, and adds them to `rows`. Returns whether all were as
// expected.
bool show(const char* heading, const std::vector<Trial>& trials, json& rows) {
  bool good = true;
  for (const Trial& trial : trials) {
    const Evidence found = trial.run();
    good = good && found.as_expected;
    std::cout << fmt::format("  {:<10} {}: {}\n{:13}{}{}\n", heading, trial.name, trial.what, "", found.text,
                             found.as_expected ? "" : "  <= NOT as expected");
    std::cout << fmt::format("{:13}PyTorch 2.15: {}\n", "", in_words(trial.torch)) << std::flush;
    rows.push_back({{"name", trial.name},
                    {"what", trial.what},
                    {"found", found.text},
                    {"as_expected", found.as_expected},
                    {"torch", trial.torch}});
  }
  return good;
}

bool show(const Claim& claim, Results& results) {
  std::cout << fmt::format("\n{} \"{}\"\n", claim.row, claim.said);
  json row{{"row", claim.row}, {"said", claim.said}, {"advised", json::array()}, {"instead", json::array()}};
  const bool advised = show("the claim", claim.advised, row["advised"]);
  const bool right = show("instead", claim.instead, row["instead"]);
  row["as_expected"] = advised && right;
  results.add(std::move(row));
  return advised && right;
}

}  // namespace

void add_claims(Command& app) {
  struct Arguments {
    std::vector<std::string> rows;
    Results results;
  };
  auto given = std::make_shared<Arguments>();
  Command command = app.add_command("claims", "Run popular advice that is wrong, beside what is right");
  command.footer(
      "Examples:\n  brigade claims\n  brigade claims 000.11 004.8\nThe numbers are rows of docs/reference/known-failures.md. Names "
      "such as UNU-13 are planted faults: brigade diagnose UNU-13 shows the whole verdict.");
  command.add_option("row", given->rows, "rows to run (without: all)");
  given->results.add_json_option(command);
  command.action([given] {
    std::vector<const Claim*> chosen;
    for (const std::string& row : given->rows)
      chosen.push_back(&find_claim(row));
    if (chosen.empty()) {
      for (const Claim& claim : all_claims())
        chosen.push_back(&claim);
    }
    given->results.begin();
    size_t good = 0;
    for (const Claim* claim : chosen)
      good += show(*claim, given->results) ? 1 : 0;
    std::cout << fmt::format("\n{} of {} as measured before\n", good, chosen.size());
    given->results.write();
    return good == chosen.size() ? 0 : 1;
  });
}

}  // namespace brigade::lab
