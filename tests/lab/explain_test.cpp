// brigade explain: in words, as a trace, and from the trace again.
#include "program.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

using namespace brigade;

TEST_CASE("explain tells buckets, ready order and one iteration; its trace tells the same again") {
  const std::string file = (std::filesystem::temp_directory_path() / "brigade-trace.json").string();
  const test::Outcome outcome = test::run_program("explain digits --ranks 2 --bucket-mb 0.02 --trace " + file);
  REQUIRE_MESSAGE(outcome.status == 0, outcome.output);
  CHECK(test::contains(outcome.output, "DigitsNet on 2 ranks over shm: 8 parameters in 2 buckets"));
  CHECK(test::contains(outcome.output, "Ready order of the last backward on rank 0: fc2.weight"));
  CHECK(test::contains(outcome.output, "gradients are final"));

  std::ifstream in(file);
  const nlohmann::json trace = nlohmann::json::parse(in);
  int buckets = 0;
  int ready = 0;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "M") continue;
    CHECK(event.at("ts").get<double>() >= 0);
    if (event.at("tid") == 2) ++ready;
    if (event.at("tid") != 1) continue;
    ++buckets;
    CHECK(event.at("dur").get<double>() > 0);
    CHECK(event.at("args").at("filled_us").get<double>() <= event.at("ts").get<double>() + 1e-3);
    CHECK(event.at("args").at("busbw_GBps").get<double>() ==
          doctest::Approx(event.at("args").at("algbw_GBps").get<double>()));
  }
  CHECK(buckets == 2 * 2 * 2);  // ranks, rounds kept, buckets
  CHECK(ready == 2 * 2 * 8);
  const auto& facts = trace.at("brigade");
  CHECK(facts.at("ready_order").size() == 8);
  CHECK(facts.at("users") == nlohmann::json(std::vector<int>(8, 2)));

  const test::Outcome again = test::run_program("explain " + file);
  CHECK(again.status == 0);
  CHECK(again.output == outcome.output);
  CHECK(test::run_program("explain " + file + " --trace copy.json").status == 2);
  for (const char* content : {"{}", "[]", "{\"results\": []}", "{\"results\": [{\"module\": \"Net\"}]}", "no JSON"}) {
    CAPTURE(content);
    std::ofstream(file) << content;
    const test::Outcome wrong = test::run_program("explain " + file);
    CHECK(wrong.status == 2);
    CHECK(test::contains(wrong.output, "is neither a trace of Brigade nor what explain --json writes"));
  }
  std::filesystem::remove(file);
}

TEST_CASE("explain --json writes the section of the trace with its events, and explain reads it back") {
  const std::string trace_file = (std::filesystem::temp_directory_path() / "brigade-explain-trace.json").string();
  const std::string json_file = (std::filesystem::temp_directory_path() / "brigade-explain.json").string();
  const test::Outcome first = test::run_program("explain digits --trace " + trace_file + " --json " + json_file);
  REQUIRE_MESSAGE(first.status == 0, first.output);
  std::ifstream trace_in(trace_file), json_in(json_file);
  const nlohmann::json trace = nlohmann::json::parse(trace_in);
  const nlohmann::json written = nlohmann::json::parse(json_in);
  CHECK(written.at("command").at(1) == "explain");
  REQUIRE(written.at("results").size() == 1);
  nlohmann::json row = written.at("results").at(0);
  CHECK(row.at("traceEvents") == trace.at("traceEvents"));
  row.erase("traceEvents");
  CHECK(row == trace.at("brigade"));
  // The same words from the recipe, from its trace, from its JSON, and from the JSON of that.
  CHECK(test::run_program("explain " + trace_file).output == first.output);
  CHECK(test::run_program("explain " + json_file).output == first.output);
  const std::string again_file = json_file + ".again";
  CHECK(test::run_program("explain " + json_file + " --json " + again_file).output == first.output);
  CHECK(test::run_program("explain " + again_file).output == first.output);
  for (const std::string& file : {trace_file, json_file, again_file})
    std::filesystem::remove(file);
}
