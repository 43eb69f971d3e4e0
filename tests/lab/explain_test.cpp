// brigade explain: its text, its trace, and the same text from that trace.
#include "program.h"

#include <brigade/core/error.h>
#include <brigade/dist/errors/verdict.h>
#include <brigade/dist/timeline/trace_events.h>
#include <brigade/lab/commands/commands.h>
#include <brigade/lab/trace_file.h>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace brigade::test::explain_test {

// A backward of two ranks with one bucket, at round numbers.
nlohmann::json made_up_trace(const char* backend, bool arrival_known) {
  dist::BucketEvents bucket;
  bucket.parameters = {0};
  bucket.bytes = 40000;
  bucket.filled = 140000;
  bucket.launched = 150000;
  bucket.arrived = arrival_known ? 160000 : 0;
  bucket.reduced = 180000;
  bucket.finished = 250000;
  dist::RoundEvents round;
  round.round = 1;
  round.backward = {"train.cpp", 12};
  round.began = 100000;
  round.compute_ended = 200000;
  round.ended = 260000;
  round.ready = {140000};
  round.buckets = {bucket};
  const std::vector<dist::RankTimeline> ranks(2, {"clock", {round}});
  const std::vector<std::string> parameters = {"fc.weight"};
  return {{"traceEvents", nlohmann::json::parse(dist::trace_events(ranks, parameters, backend))},
          {"brigade",
           {{"module", "Net"},
            {"ranks", 2},
            {"backend", backend},
            {"first_bucket_bytes", 1000},
            {"bucket_cap_bytes", 1000},
            {"rebuilt", false},
            {"parameters", {{{"name", "fc.weight"}, {"dtype", "float32"}, {"numel", 10000}, {"bytes", 40000}}}},
            {"buckets", {{{"dtype", "float32"}, {"parameters", {0}}, {"numel", 10000}}}},
            {"ready_order", {0}},
            {"users", {2}}}}};
}

TEST_CASE("explain tells buckets, ready order and one iteration; its trace tells the same again") {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("brigade-trace-" + std::to_string(getpid()) + ".json")).string();
  const test::Outcome outcome = test::run_program("explain digits --ranks 2 --bucket-mb 0.02 --trace " + file);
  REQUIRE_MESSAGE(outcome.status == 0, outcome.output);
  CHECK(test::contains(outcome.output, "DigitsNet on 2 ranks over shm: 8 parameters in 2 buckets"));
  CHECK(test::contains(outcome.output, "Ready order of the last backward on rank 0: fc2.weight"));
  CHECK(test::contains(outcome.output, "gradients are final"));
  CHECK(test::contains(outcome.output, "SGD.step() at"));

  std::ifstream in(file);
  const nlohmann::json trace = nlohmann::json::parse(in);
  int buckets = 0;
  int phases = 0;
  int ready = 0;
  int steps = 0;
  for (const lab::TraceSlice& slice : lab::read_trace("explain", file).slices) {
    CHECK(slice.begin >= 0);
    CHECK(slice.end >= slice.begin);
    if (slice.instant) ++(slice.arguments->contains("optimizer") ? steps : ready);
    if (slice.category != "collective") continue;
    if (slice.name.starts_with("bucket")) {
      ++buckets;
      CHECK(slice.arguments->at("filled_us").get<double>() <= slice.begin + 1e-3);
    } else {
      ++phases;
    }
    if (slice.name == "reduce") {
      const double bandwidth = slice.arguments->at("bytes").get<double>() / (slice.end - slice.begin) * 1e-3;
      CHECK(slice.arguments->at("algbw_GBps").get<double>() / bandwidth == doctest::Approx(1).epsilon(1e-3));
      CHECK(slice.arguments->at("busbw_GBps").get<double>() / bandwidth == doctest::Approx(1).epsilon(1e-3));
    }
  }
  CHECK(buckets == 2 * 2 * 2);  // ranks, rounds kept, buckets
  CHECK(phases == 2 * buckets);
  CHECK(ready == 2 * 2 * 8);
  CHECK(steps == 2 * 2);
  const auto& facts = trace.at("brigade");
  CHECK(facts.at("ready_order").size() == 8);
  CHECK(facts.at("users") == nlohmann::json(std::vector<int>(8, 2)));

  const test::Outcome again = test::run_program("explain " + file);
  CHECK(again.status == 0);
  CHECK(again.output == outcome.output);
  CHECK(test::run_program("explain " + file + " --trace copy.json").status == 2);
  for (const char* content : {"{}", "[]", "{\"results\": []}", "{\"results\": [{\"module\": \"Net\"}]}", "no JSON",
                              "{\"traceEvents\": [], \"brigade\": deep}"}) {
    CAPTURE(content);
    std::string text = content;
    if (const size_t place = text.find("deep"); place != text.npos)
      text.replace(place, 4, std::string(3'000'000, '[') + std::string(3'000'000, ']'));
    std::ofstream(file) << text;
    const test::Outcome wrong = test::run_program("explain " + file);
    CHECK(wrong.status == 2);
    CHECK(test::contains(wrong.output, "is neither a trace of Brigade nor what explain --json writes"));
  }
  std::filesystem::remove(file);
}

TEST_CASE("[003.8] explain --amp tells the scale of each step, who found an infinity, and what made it") {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("brigade-amp-trace-" + std::to_string(getpid()) + ".json")).string();
  const test::Outcome outcome = test::run_program("explain digits --amp --backend threads --trace " + file);
  REQUIRE_MESSAGE(outcome.status == 0, outcome.output);
  // The initial scale is too large once the gradients have grown.
  for (const char* part :
       {"The loss scaler of DigitsNet on 2 ranks over threads", "  1  SGD           65536  taken    -",
        "SGD           65536  skipped  on ranks 0 and 1", " of 66 steps ", "the scale went from 65536 to "})
    CHECK_MESSAGE(test::contains(outcome.output, part), outcome.output);
  CHECK(test::run_program("explain " + file + " --amp").output == outcome.output);

  // A synthetic trace: only rank 1 finds an infinity, and it knows its origin.
  nlohmann::json trace = made_up_trace("gloo", true);
  dist::RoundEvents round;
  round.round = 7;
  round.began = 100000;
  round.compute_ended = round.ended = 200000;
  dist::StepEvents step{
      .optimizer = "Adam", .number = 3, .where = Place("a.cpp", 4), .at = 210000, .loss_scale = 512, .skipped = true};
  round.steps = {step};
  std::vector<dist::RankTimeline> ranks(2, {"clock", {round}});
  ranks[1].rounds[0].steps[0].found_inf = true;
  ranks[1].rounds[0].non_finite = "exp at net.cpp:9";
  round.round = 8;
  round.non_finite.clear();
  round.steps[0].loss_scale = 256;
  round.steps[0].skipped = false;
  for (dist::RankTimeline& rank : ranks)
    rank.rounds.push_back(round);
  trace["traceEvents"] = nlohmann::json::parse(dist::trace_events(ranks, std::vector<std::string>{}, "gloo"));
  std::ofstream(file) << trace;
  const std::string words = test::run_program("explain " + file + " --amp").output;
  CHECK_MESSAGE(test::contains(words, "7  Adam            512  skipped  on rank 1, first made by exp at net.cpp:9\n"),
                words);
  CHECK_MESSAGE(test::contains(words, "8  Adam            256  taken    -\n"), words);
  CHECK(test::contains(words, "1 of 2 steps was skipped; the scale went from 512 to 256."));
  // The scale may rise again.
  round.round = 9;
  round.steps[0].loss_scale = 512;
  for (dist::RankTimeline& rank : ranks)
    rank.rounds.push_back(round);
  trace["traceEvents"] = nlohmann::json::parse(dist::trace_events(ranks, std::vector<std::string>{}, "gloo"));
  std::ofstream(file) << trace;
  CHECK(test::contains(test::run_program("explain " + file + " --amp").output, "the scale moved between 256 and 512."));
  // A trace without steps of a loss scaler.
  std::ofstream(file) << made_up_trace("gloo", true);
  CHECK(test::contains(test::run_program("explain " + file + " --amp").output,
                       "No step of this trace was taken by a loss scaler"));
  CHECK(test::run_program("explain digits --amp --bucket-mb 1").status == 2);
  std::filesystem::remove(file);
}

TEST_CASE("explain --json writes the section of the trace with its events, and explain reads it back") {
  const std::string trace_file =
      (std::filesystem::temp_directory_path() / ("brigade-explain-trace-" + std::to_string(getpid()) + ".json"))
          .string();
  const std::string json_file =
      (std::filesystem::temp_directory_path() / ("brigade-explain-" + std::to_string(getpid()) + ".json")).string();
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
  // The text is the same from the recipe, from its trace, from its JSON, and from the JSON of that JSON.
  CHECK(test::run_program("explain " + trace_file).output == first.output);
  CHECK(test::run_program("explain " + json_file).output == first.output);
  const std::string again_file = json_file + ".again";
  CHECK(test::run_program("explain " + json_file + " --json " + again_file).output == first.output);
  CHECK(test::run_program("explain " + again_file).output == first.output);
  for (const std::string& file : {trace_file, json_file, again_file})
    std::filesystem::remove(file);
}

TEST_CASE("explain tells waiting for peers from reducing, and the bandwidth of reducing only") {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("brigade-made-up-trace-" + std::to_string(getpid()) + ".json"))
          .string();
  std::ofstream(file) << made_up_trace("shm", true);
  const test::Outcome known = test::run_program("explain " + file);
  REQUIRE_MESSAGE(known.status == 0, known.output);
  for (const char* line : {"     40.0  gradient of fc.weight is ready\n", "     40.0  bucket 0 is full\n",
                           "     50.0  bucket 0 is launched: 39.1 KiB of payload",
                           "     60.0  all ranks have launched bucket 0, 10.0 us after this one\n",
                           "     80.0  bucket 0 is averaged in 20.0 us: 2.00 GB/s of algorithm bandwidth, 2.00 GB/s on "
                           "the bus\n",
                           "    150.0  bucket 0 is seen to be averaged\n", "    160.0  gradients are final; 50 %"}) {
    CHECK_MESSAGE(test::contains(known.output, line), line << " in " << known.output);
  }

  std::ofstream(file) << made_up_trace("gloo", false);
  const test::Outcome unknown = test::run_program("explain " + file);
  REQUIRE_MESSAGE(unknown.status == 0, unknown.output);
  CHECK(test::contains(unknown.output,
                       "    150.0  bucket 0 is averaged 100.0 us after its launch; how much of that was waiting "
                       "for peers is not known, so there is no bandwidth\n"));
  CHECK_FALSE(test::contains(unknown.output, "GB/s"));
  std::filesystem::remove(file);
}

TEST_CASE("explain KIND says what else can be done, and every text that refers to it names a kind that it knows") {
  const test::Outcome unused = test::run_program("explain unused_parameters");
  CHECK(unused.status == 0);
  CHECK(test::contains(unused.output, "report_at = NextForward"));
  CHECK(test::run_program("explain unused_parameter").status != 0);
  size_t explained = 0;
  for (const char* kind : {"averaged_twice",       "backward_mismatch",
                           "batch_skipped",        "buffers_differ",
                           "buffers_written",      "collective_mismatch",
                           "collective_timeout",   "edited_before_reduction",
                           "gradient_outlier",     "gradients_edited",
                           "hook_result",          "non_finite_gradients",
                           "optimizers_differ",    "parameters_differ",
                           "parameters_written",   "rank_lost",
                           "same_batches",         "slow_rank",
                           "uneven_batches",       "uneven_factors",
                           "uneven_micro_batches", "unmanaged_parameters",
                           "unreached_module",     "unreduced_gradients",
                           "unused_parameters"}) {
    dist::Verdict verdict = dist::new_verdict(kind, dist::Severity::Error, dist::CauseKind::Unknown);
    const bool refers = dist::advice_in_words(verdict).ends_with(fmt::format("(More: brigade explain {})", kind));
    CHECK(refers == !lab::more_about(kind).empty());
    explained += refers;
  }
  CHECK(explained == 23);
}

TEST_CASE("a trace whose events do not begin or do not end is refused") {
  nlohmann::json trace = made_up_trace("shm", true);
  nlohmann::json& events = trace["traceEvents"];
  const auto phase = [](const char* name) {
    return [=](const nlohmann::json& event) { return event.at("ph") == name; };
  };
  nlohmann::json without_end = trace;
  nlohmann::json& fewer = without_end["traceEvents"];
  fewer.erase(std::find_if(fewer.begin(), fewer.end(), phase("E")));
  CHECK_THROWS_WITH_AS(lab::trace_of_text(without_end.dump()),
                       "trace: 'backward' of rank 0 begins at 0 us and does not end", ValueError);
  events.erase(std::find_if(events.begin(), events.end(), phase("b")));
  CHECK_THROWS_WITH_AS(lab::trace_of_text(trace.dump()), "trace: 'bucket 0' of rank 0 ends at 150 us and did not begin",
                       ValueError);
}

}  // namespace brigade::test::explain_test
