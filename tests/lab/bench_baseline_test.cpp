// --baseline: matches rows of an earlier JSON by their keys, and reports a different processor.
#include <brigade/lab/bench/report.h>

#include "program.h"

#include <brigade/core/error.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace brigade::test::bench_baseline_test {

using nlohmann::json;

std::string file_name(const std::string& what) {
  return (std::filesystem::temp_directory_path() / ("brigade-baseline-" + std::to_string(getpid()) + what)).string();
}

std::string written(const json& content) {
  const std::string file = file_name(".json");
  std::ofstream(file) << content.dump();
  return file;
}

const json kEarlier{{"version", "0.0.9"},
                    {"commit", "abcdef"},
                    {"machine", {{"cpu", "Processor One"}}},
                    {"results",
                     {{{"bytes", 4}, {"backend", "shm"}, {"time_us", {{"median", 2.0}}}},
                      {{"bytes", 4}, {"backend", "gloo"}, {"time_us", {{"median", 50.0}}}},
                      {{"bytes", 8}, {"backend", "shm"}}}}};

TEST_CASE("a row of the baseline is that whose fields are those of the key") {
  const lab::bench::Baseline baseline(written(kEarlier), "time_us");
  CHECK(baseline.median_of({{"bytes", 4}, {"backend", "shm"}}) == 2);
  CHECK(baseline.median_of({{"bytes", 4}, {"backend", "gloo"}}) == 50);
  CHECK(baseline.median_of({{"bytes", 8}, {"backend", "shm"}}) == 0);
  CHECK(baseline.median_of({{"bytes", 4}, {"backend", "shm"}, {"ranks", 2}}) == 0);
}

TEST_CASE("where the baseline is from: another processor is a warning") {
  const lab::bench::Baseline baseline(written(kEarlier), "time_us");
  const std::string same = baseline.origin("Processor One"), other = baseline.origin("Processor Two");
  CHECK(test::contains(same, "Brigade 0.0.9 (abcdef), Processor One"));
  CHECK(!test::contains(same, "WARNING"));
  CHECK(test::contains(other, "WARNING: the baseline is from another processor than this one (Processor Two)"));
  CHECK(test::contains(baseline.origin(""), "WARNING"));
}

TEST_CASE("a baseline without the measure, or that is no result, is refused") {
  for (const json& content : {kEarlier, json(7), json{{"results", 7}}, json{{"results", {7}}}}) {
    CAPTURE(content.dump());
    CHECK_THROWS_WITH_AS(lab::bench::Baseline(written(content), "step_ms"),
                         doctest::Contains("with rows that have \"step_ms\""), ValueError);
  }
  CHECK_THROWS_AS(lab::bench::Baseline("/no/such.json", "time_us"), IoError);
}

TEST_CASE("the JSON of one run is the baseline of the next: every row is found, and its ratio is that of the medians") {
  const std::string file = file_name(".first.json");
  const std::string command = "bench allreduce --backends threads --sizes 4K,64K --rounds 3 --memory plain";
  REQUIRE(test::run_program(command + " --json " + file).status == 0);
  const test::Streams second = test::run_program_apart(command + " --json - --baseline " + file);
  REQUIRE(second.status == 0);
  CHECK(test::contains(second.errors, "baseline " + file + ": Brigade "));
  CHECK(!test::contains(second.errors, "WARNING"));
  CHECK(test::contains(second.errors, "before"));
  std::ifstream in(file);
  const json before = json::parse(in).at("results");
  const json now = json::parse(second.output).at("results");
  REQUIRE(now.size() == 4);
  for (size_t row = 0; row < now.size(); ++row) {
    const double ratio =
        now[row].at("time_us").at("median").get<double>() / before[row].at("time_us").at("median").get<double>();
    CHECK(now[row].at("baseline_ratio").get<double>() == doctest::Approx(ratio));
    CHECK(!before[row].contains("baseline_ratio"));
  }
  // A row with another key does not match.
  const test::Streams other = test::run_program_apart(command + " --dtypes float64 --json - --baseline " + file);
  CHECK(test::contains(other.errors, " new"));
  CHECK(!json::parse(other.output).at("results").at(0).contains("baseline_ratio"));
  std::filesystem::remove(file);
}

}  // namespace brigade::test::bench_baseline_test
