// An error appears once in the terminal, cause first, no matter how many ranks raise it and how it gets printed.
#include <brigade/dist/groups/backends.h>
#include <brigade/lab/rank_job.h>

#include "program.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace brigade::test::one_verdict_test {

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++found;
  return found;
}

std::vector<std::string> backends() {
  std::vector<std::string> names{"shm"};
  if (dist::find_backend("gloo").missing.empty()) names.emplace_back("gloo");
  return names;
}

constexpr const char* kCause = "why: module `idle` was not called";
constexpr const char* kParameters = "No gradient: idle.weight, idle.bias (40 B), on ranks 0";
constexpr const char* kFix = "do:  call it in forward";
constexpr const char* kPhrase = "Expected to have finished reduction in the prior iteration before starting a new one.";

// Checks that each part appears exactly once, and in this order.
void check_once(const std::string& output) {
  CAPTURE(output);
  size_t last = 0;
  for (const char* part : {kParameters, kCause, kFix, kPhrase}) {
    CAPTURE(part);
    CHECK(count(output, part) == 1);
    const size_t at = output.find(part);
    CHECK(at > last);
    last = at;
  }
}

TEST_CASE("an error that all ranks raise is printed once, whether the program catches it or not") {
  for (const std::string& backend : backends()) {
    for (const int ranks : {2, 3}) {
      for (const std::string how : {"uncaught", "caught"}) {
        for (const std::string prefix : {"", "--no-prefix "}) {
          CAPTURE(backend);
          CAPTURE(ranks);
          CAPTURE(how);
          CAPTURE(prefix);
          const test::Outcome outcome = test::run_program("run -n " + std::to_string(ranks) + " " + prefix +
                                                          RAISE_VERDICT + " " + backend + " unused " + how);
          CHECK(outcome.status == (how == "uncaught" ? 128 + 6 : 1));
          check_once(outcome.output);
          CHECK(count(outcome.output, "(the same error as on rank ") == ranks - 1);
          CHECK(count(outcome.output, "(the error above)") == 1);
          CHECK(count(outcome.output, "brigade run: rank ") == 1);
        }
      }
    }
  }
}

TEST_CASE("ranks that are threads of one process print an error once") {
  for (const std::string how : {"uncaught", "caught"})
    check_once(test::run_program("run -n 1 " RAISE_VERDICT " threads:3 unused " + how).output);
}

TEST_CASE("a rank that is gone is reported once, by whichever rank waits for it") {
  for (const std::string& backend : backends()) {
    CAPTURE(backend);
    const test::Outcome outcome =
        test::run_program(std::string("run -n 3 ") + RAISE_VERDICT + " " + backend + " gone caught");
    CAPTURE(outcome.output);
    CHECK(outcome.status == 1);
    CHECK(count(outcome.output, "training failed: Rank 2 left") == 1);
    CHECK(count(outcome.output, "training failed: (the same error as on rank ") == 1);
    CHECK(count(outcome.output, "  what():") == 0);
  }
}

TEST_CASE("other errors of ranks are each rank's own, and the first one's last words are reported again") {
  const test::Outcome outcome = test::run_program("run -n 2 " RAISE_VERDICT " shm plain caught");
  CAPTURE(outcome.output);
  CHECK(count(outcome.output, "training failed: no such file: labels.bin") == 3);
  CHECK(test::contains(outcome.output, "first; its last words:\ntraining failed: no such file: labels.bin"));
}

TEST_CASE("commands that start their ranks themselves print a verdict once") {
  for (const std::string& backend : backends()) {
    CAPTURE(backend);
    for (const std::string ranks : {"2", "3"}) {
      const std::string output = test::run_program("diagnose UNU-01 --backend " + backend + " --ranks " + ranks).output;
      CAPTURE(output);
      CHECK(count(output, kPhrase) == 1);
      CHECK(count(output, "why: module `aux` was not called") == 1);
      CHECK(output.find("why: ") < output.find(kPhrase));
    }
  }
  const std::string output = test::run_program("diagnose UNU-01 --backend threads --ranks 3").output;
  CHECK(count(output, kPhrase) == 1);
}

TEST_CASE("a rank of another launcher prints what all raise on rank 0 only, and what is its own in any case") {
  lab::JoinedJob joined{{false, "cause: x", "ReductionError"}, 0, 2, "shm"};
  CHECK(lab::error_in_words(joined) == "rank 0 (ReductionError): cause: x");
  joined.rank = 1;
  CHECK(lab::error_in_words(joined) == "rank 1 (ReductionError): the same error as on rank 0");
  joined.result.error = "PeerError";
  CHECK(lab::error_in_words(joined) == "rank 1 (PeerError): cause: x");
}

}  // namespace brigade::test::one_verdict_test
