// Every planted fault and every control, with one bucket, two, and one per parameter, on 2 and 4 ranks, on every
// backend.
#include <brigade/lab/faults/diagnosis.h>

#include "program.h"

#include <test_part.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <vector>

#include <unistd.h>

namespace brigade::test::faults_test {
namespace {

// Under the sanitizers each program runs once: they are ten times slower and check memory, not verdicts.
#ifdef __SANITIZE_ADDRESS__
const std::vector<double> kBucketSizes{1e-4};
const std::vector<int> kRanks{2};
#else
const std::vector<double> kBucketSizes{25.0, 1e-4, 1e-6};
const std::vector<int> kRanks{2, 4};
#endif

}  // namespace

TEST_CASE("every fault gets its verdict and its fix works, every control stays silent, however the buckets are cut") {
  REQUIRE(lab::all_faults().size() >= 160);
  for (size_t index = 0; index < lab::all_faults().size(); ++index) {
    if (!test::is_of_this_part(index)) continue;
    const lab::Fault& fault = lab::all_faults()[index];
    for (const double bucket_mb : kBucketSizes) {
      // Faults that wait for a time-out do not depend on buckets.
      if (fault.timeout < std::chrono::seconds(30) && bucket_mb != kBucketSizes.front()) continue;
      for (const int ranks : kRanks) {
        const lab::Diagnosis found =
            lab::diagnose(fault, {.backend = "threads", .ranks = ranks, .bucket_mb = bucket_mb});
        CAPTURE(bucket_mb);
        CAPTURE(ranks);
        CHECK_MESSAGE((found.passed || found.skipped), fault.id << ": " << found.why_not << "\n" << found.text);
      }
    }
  }
}

TEST_CASE("the same verdicts between processes, as text and as JSON") {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("brigade-verdicts-" + std::to_string(getpid()) + ".json")).string();
  std::string ids;
  size_t count = 0;
  for (size_t index = 0; index < lab::all_faults().size(); ++index) {
    if (!test::is_of_this_part(index)) continue;
    ids += lab::all_faults()[index].id + " ";
    ++count;
  }
  for (const std::string backend : {"shm", "gloo"}) {
    const test::Outcome outcome = test::run_program("diagnose " + ids + "--backend " + backend + " --json " + file);
    CHECK_MESSAGE(outcome.status == 0, outcome.output);
    std::ifstream in(file);
    const nlohmann::json report = nlohmann::json::parse(in);
    CHECK(report.at("results").size() == count);
    for (const auto& row : report.at("results")) {
      CHECK(row.at("passed") == true);
      if (row.at("id") == "UNU-12") {
        const auto& verdict = row.at("verdicts").at(0);
        CHECK(verdict.at("kind") == "unused_parameters");
        CHECK(verdict.at("parameters").at(0).at("name") == "generator.weight");
        CHECK(verdict.at("parameters").at(0).at("missing_ranks") == nlohmann::json({0, 1}));
        CHECK(verdict.at("cause").at("kind") == "detached");
        CHECK(verdict.at("cause").at("file") == "lab/faults/unused/gan.cpp");
        CHECK(verdict.at("cause").at("line").get<int>() > 0);
      }
    }
  }
  std::filesystem::remove(file);
  const test::Outcome list = test::run_program("diagnose --list");
  CHECK(list.status == 0);
  CHECK(test::contains(list.output, "UNU-01"));
}

// The text of a verdict, or of a plain error or warning, which has no kind.
std::string text_of(const nlohmann::json& verdict) {
  const std::string message = verdict.at("message"), advice = verdict.at("advice");
  return message == advice ? message : message + dist::kDo + advice;
}

TEST_CASE("every text says what, who and where on its first line, then why, then what to do, and is short") {
  if (!test::is_of_this_part(0)) return;
  const std::string file =
      (std::filesystem::temp_directory_path() / ("brigade-texts-" + std::to_string(getpid()) + ".json")).string();
  CHECK(test::run_program("diagnose --all --json " + file).status == 0);
  std::ifstream in(file);
  const nlohmann::json report = nlohmann::json::parse(in);
  const std::regex place("[a-z_]+\\.cpp:[0-9]+");
  const std::regex who(
      "[a-z0-9]\\.[a-z]|[Rr]anks? [0-9]|DDP\\(|All [0-9]+ ranks|`|SGD|Adam|scaler|update|weight|"
      "find_unused_parameters|logit_scale|spread|retain_graph|multiply");
  std::vector<size_t> sizes;
  for (const auto& row : report.at("results")) {
    for (const auto& verdict : row.at("verdicts")) {
      const std::string text = text_of(verdict);
      CAPTURE(row.at("id"));
      CAPTURE(text);
      sizes.push_back(text.size());
      const size_t why = text.find("\nwhy: "), advice = text.find("\ndo:  ");
      REQUIRE(advice != std::string::npos);
      const std::string first = text.substr(0, text.find('\n'));
      CHECK(first.size() < 300);
      REQUIRE(why != std::string::npos);
      CHECK(why < advice);
      CHECK(std::count(text.begin(), text.end(), '\n') <= 2);
      CHECK(std::regex_search(first, place));
      CHECK(std::regex_search(first, who));
      CHECK(first.ends_with('.'));
    }
  }
  std::filesystem::remove(file);
  std::ranges::sort(sizes);
  REQUIRE(sizes.size() > 100);
  CHECK(sizes[sizes.size() / 2] <= 285);
  CHECK(sizes[sizes.size() * 9 / 10] <= 420);
  CHECK(sizes.back() <= 520);
}

TEST_CASE("a fault is found by its id or by the name of its namespace") {
  CHECK(lab::find_fault("unu-12").name == "detach_between_gan_halves");
  CHECK(lab::find_fault("detach_between_gan_halves").id == "UNU-12");
  CHECK(lab::find_faults("assorted").size() > 1);
  CHECK_THROWS_AS(lab::find_fault("UNU"), ValueError);
}

TEST_CASE("an expectation that does not hold fails the run: the judge is awake") {
  lab::Fault fault = lab::find_fault("UNU-01");
  const auto why = [&] { return lab::diagnose(fault, {.backend = "threads", .ranks = 2}).why_not; };
  fault.expected.cause = "detached";
  CHECK(why() == "cause is module_not_called, expected detached");
  fault = lab::find_fault("UNU-01");
  fault.expected.parameters = {"aux.weight"};
  CHECK(test::contains(why(), "it names the parameters"));
  fault = lab::find_fault("UNU-01");
  fault.expected.ranks = {1};
  CHECK(test::contains(why(), "it names ranks 0 and 1, expected rank 1"));
  fault = lab::find_fault("UNU-01");
  fault.expected.detected = false;
  CHECK(test::contains(why(), "a control was reported"));
  fault = lab::find_fault("AMP-01");
  fault.expected.words = {"another phrase"};
  CHECK(why() == "the text has no 'another phrase'");
  fault = lab::find_fault("AMP-01");
  fault.file = "another/file.cpp";
  fault.expected.file_and_line = false;
  CHECK(test::contains(why(), "another/file.cpp:"));
  CHECK(test::contains(why(), " is not named"));
  // When a rank throws its own error, the others report it.
  fault = lab::find_fault("COL-27");
  fault.expected.ranks = {0};
  CHECK(test::contains(why(), "rank 1 raised an error without a verdict"));
  fault = lab::find_fault("OK-19");
  fault.expected = {.kind = "wrongly_scaled", .ranks = {1}};
  CHECK(why() == "rank 1 has thrown nothing of its own");
  fault = lab::find_fault("AMP-19");
  fault.expected.detected = false;
  CHECK(test::contains(why(), "a control was reported"));
}

}  // namespace brigade::test::faults_test
