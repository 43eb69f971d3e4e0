// `brigade claims`: runs every row of docs/reference/known-failures.md marked "Wrong", and the correct alternative.
#include <brigade/lab/claims/claim.h>

#include "program.h"

#include <core/temporary_folder.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <regex>
#include <string>
#include <vector>

namespace brigade::test::claims_test {

using nlohmann::json;

// The numbers of the table rows marked "Wrong".
std::vector<std::string> wrong_rows() {
  std::ifstream in(BRIGADE_SOURCE_DIR "/docs/reference/known-failures.md");
  const std::regex row(R"(^\| (\d{3}\.\d+) \|.*\*\*Wrong\*\*.*)");
  std::vector<std::string> rows;
  std::smatch found;
  for (std::string line; std::getline(in, line);)
    if (std::regex_match(line, found, row)) rows.push_back(found[1]);
  return rows;
}

// The rows recorded by a script of evidence/faults_torch.
json recorded(const std::string& file) {
  std::ifstream in(BRIGADE_SOURCE_DIR "/evidence/faults_torch/" + file);
  return json::parse(in).at("rows");
}

TEST_CASE("the rows that say Wrong, and no others, are claims that the program runs") {
  std::vector<std::string> rows;
  for (const lab::Claim& claim : lab::all_claims()) {
    rows.push_back(claim.row);
    CHECK(!claim.advised.empty());
    CHECK(!claim.instead.empty());
  }
  CHECK(rows.size() == 10);
  CHECK(rows == wrong_rows());
}

TEST_CASE("what PyTorch does is what its scripts have measured, of every program") {
  const json planted = recorded("results.json"), measured = recorded("claims.json");
  for (const lab::Claim& claim : lab::all_claims()) {
    std::vector<lab::Trial> trials = claim.advised;
    trials.insert(trials.end(), claim.instead.begin(), claim.instead.end());
    for (const lab::Trial& trial : trials) {
      CAPTURE(claim.row);
      CAPTURE(trial.name);
      if (!planted.contains(trial.name)) {
        CHECK(lab::in_words(trial.torch) == measured.at(claim.row).at(trial.name).get<std::string>());
        continue;
      }
      const std::string cell = planted.at(trial.name).at("OFF");
      CHECK(cell.substr(0, cell.find(' ')) == trial.torch);
      CHECK(lab::in_words(trial.torch) != trial.torch);
    }
  }
}

TEST_CASE(
    "[000.11] [001.3] [001.5] [001.7] [002.5] [003.6] [003.7] [004.5] [004.6] [004.8] the popular fix fails and the right one works, in print") {
  const test::TemporaryFolder folder;
  const test::Outcome outcome = test::run_program("claims --json " + folder / "claims.json");
  REQUIRE_MESSAGE(outcome.status == 0, outcome.output);
  const json rows = json::parse(test::read_bytes(folder / "claims.json")).at("results");
  CHECK(rows.size() == 10);
  for (const json& row : rows) {
    CAPTURE(row.dump());
    CHECK(row.at("as_expected") == true);
    CHECK(test::contains(outcome.output, "\n" + row.at("row").get<std::string>() + " \""));
    for (const char* part : {"advised", "instead"}) {
      for (const json& trial : row.at(part)) {
        CHECK(test::contains(outcome.output, trial.at("found")));
        CHECK(test::contains(outcome.output, "PyTorch 2.15: " + lab::in_words(trial.at("torch"))));
      }
    }
  }
  for (const char* part :
       {"unused_parameters (no_grad)", "Wrong scale: the gradient of 'b.weight'", "optimizers_differ (options_differ)",
        "its names without a gradient: []", "not used here, used by 1 of 2 ranks",
        "PyTorch 2.15: silent, and the ranks differ", "10 of 10 as measured before"})
    CHECK_MESSAGE(test::contains(outcome.output, part), outcome.output);
}

TEST_CASE("one claim can be asked for, and a row that is none gets the others") {
  const test::Outcome one = test::run_program("claims 004.8");
  CHECK(one.status == 0);
  CHECK(test::contains(one.output, "004.8 \"all_reduce(loss)"));
  CHECK(!test::contains(one.output, "000.11"));
  const test::Outcome none = test::run_program("claims 000.1");
  CHECK(none.status == 2);
  CHECK_MESSAGE(test::contains(none.output, "no claim 000.1; known are 000.11, 001.3"), none.output);
}

}  // namespace brigade::test::claims_test
