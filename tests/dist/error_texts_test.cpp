// The texts of errors with verdicts: each says what to do, and long lists are cut.
#include <brigade/brigade.h>
#include <brigade/dist/diagnosis/report.h>
#include <brigade/dist/errors/collective.h>
#include <brigade/dist/groups/collective_errors.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace brigade::test::error_texts_test {
size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

const dist::CollectiveInfo kMean{
    .sequence = 7, .kind = dist::CollectiveKind::AllReduce, .op = dist::ReduceOp::Avg, .dtype = kFloat32, .count = 8};
const dist::WaitingRank kWaiting{0, kMean};

dist::RankStatus place_of(int rank) {
  dist::RankStatus place;
  place.rank = rank;
  place.last = kMean;
  return place;
}

// The error of a backward that missed `missing` parameters, each with a cause of its own.
dist::ReductionError error_of(size_t missing) {
  std::vector<dist::NamedParameter> parameters;
  dist::RankReport report;
  dist::ErrorContext context;
  for (uint32_t i = 0; i < missing; ++i) {
    parameters.push_back({fmt::format("layer{}.weight", i), zeros({2})});
    report.ready.push_back(false);
    dist::Cause cause;
    cause.kind = dist::CauseKind::NotUsed;
    cause.text = fmt::format("layer {} ran, and no operation took its weight", i);
    report.causes.emplace(i, cause);
    context.expected.push_back(1);
  }
  const std::vector<dist::RankReport> reports{report};
  return dist::compose_error(reports, parameters, context);
}

TEST_CASE("every error of a collective prints what to do, once and at its end") {
  const std::vector<dist::RankStatus> missing{place_of(1)};
  std::vector<dist::RankStatus> apart{place_of(0), place_of(1)};
  apart[1].last.count = 9;
  const auto lost = dist::lost_rank_error(kWaiting, missing[0], {dist::Departure::How::Died, "process 12 has ended"});
  const auto late = dist::missing_ranks_error(kWaiting, missing, "timed out after 5 ms");
  const auto step = dist::late_step_error(kWaiting, late, "timed out after 9 ms", "inside its host");
  const auto met = dist::mismatch_error(apart, dist::FlightRecorder(), {});
  std::vector<std::pair<std::string, std::vector<dist::Verdict>>> errors;
  for (const dist::Diagnosed* each : std::initializer_list<const dist::Diagnosed*>{&lost, &late, &step, &met}) {
    const std::string text = dynamic_cast<const std::exception&>(*each).what();
    errors.emplace_back(text, each->verdicts());
    try {  // and the error that another rank makes of it
      std::rethrow_exception(dist::reported_error({2, kMean}, 0, text, each->verdicts()));
    } catch (const DistError& told) {
      errors.emplace_back(told.what(), each->verdicts());
    }
  }
  for (const auto& [text, verdicts] : errors) {
    CAPTURE(text);
    REQUIRE(verdicts.size() == 1);
    CHECK(count(text, "\ndo:  ") == 1);
    CHECK(text.ends_with("\ndo:  " + dist::advice_in_words(verdicts[0])));
  }
}

TEST_CASE("what to do depends on how a rank was lost") {
  const auto expect = [](dist::Departure::How how, const std::string& words, const std::string& in_words,
                         const std::string& advice) {
    const auto error = dist::lost_rank_error(kWaiting, place_of(1), {how, words});
    const std::string text = error.what();
    CHECK(text.starts_with("Rank 1 " + in_words + "; rank 0 waited for it in"));
    CHECK(text.find("\nwhy: " + (words.empty() || words == in_words ? "rank 1 " : words)) != std::string::npos);
    CHECK(error.verdicts()[0].advice.starts_with(advice));
  };
  using How = dist::Departure::How;
  const std::string in_process = "its process (12) ended with status 0";
  expect(How::Left, "", "left the group", "give every rank the same number");
  expect(How::Left, in_process, "left the group", "give every rank the same number");
  expect(How::Failed, "no label", "failed", "repair that error");
  // The text of an exception has no influence.
  expect(How::Failed, "left the group", "failed", "repair that error");
  expect(How::LeftByException, "", "left while an exception was in flight", "repair that error");
  const std::string killed = "process 12 was ended by signal 9, Killed";
  expect(How::Died, killed, "died", "see its own output and exit status");
  expect(How::Unknown, "left or died", "left or died", "see its own output and exit status");
}

TEST_CASE("long lists are cut, and the verdicts have all") {
  const dist::ReductionError many = error_of(300);
  const std::string text = many.what();
  CHECK(many.verdicts().size() == 300);
  CHECK(count(text, "why:") == 8);
  CHECK(text.find("and 292 more") != std::string::npos);
  CHECK(text.find("layer7.weight") != std::string::npos);
  CHECK(text.find("layer8.weight") == std::string::npos);
  CHECK(text.size() < 6000);
  const std::string few = error_of(8).what();
  CHECK(count(few, "why:") == 8);
  CHECK(few.find(" more") == std::string::npos);

  std::vector<dist::RankStatus> missing;
  for (int r = 1; r < 64; ++r)
    missing.push_back(place_of(r));
  const auto late = dist::missing_ranks_error(kWaiting, missing, "timed out after 5 ms");
  CHECK(std::string(late.what()).find("and 55 more") != std::string::npos);
  CHECK(late.verdicts()[0].ranks.size() == 63);
  CHECK(late.verdicts()[0].message.find("Ranks 1 to 63 did not come") != std::string::npos);
}

TEST_CASE("ranks in words: one by one while they are few, then by ranges") {
  CHECK(dist::list_of({0, 1, 2, 3, 4, 5, 6, 7}) == "0, 1, 2, 3, 4, 5, 6 and 7");
  CHECK(dist::list_of({0, 1, 2, 3, 4, 5, 7, 9, 10}) == "0 to 5, 7, 9 and 10");
  CHECK(dist::list_of({}) == "");
}

}  // namespace brigade::test::error_texts_test
