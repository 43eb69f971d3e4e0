// `brigade run` with ranks that misbehave: it ends, with the right status, and names what was wrong.
#include "program.h"

#include <doctest/doctest.h>

#include <string>

using namespace brigade;
using test::contains;
using test::run_program;

TEST_CASE("a daemon that a rank leaves behind does not keep brigade run from ending") {
  // The daemon holds the streams of the rank; the rank waits until it has left the rank's process group.
  const test::Outcome outcome = run_program(
      "run -n 2 -- bash -c 'f=$(mktemp -u); mkfifo $f; setsid sh -c \"echo up > $f; exec sleep 31.25\" & read up < $f; "
      "rm $f; echo rank $RANK is done'",
      "", 20);
  CAPTURE(outcome.output);
  CHECK(outcome.status == 0);
  CHECK(contains(outcome.output, "[rank 0] rank 0 is done\n"));
  CHECK(contains(outcome.output, "[rank 1] rank 1 is done\n"));
}

TEST_CASE("a signal to brigade run ends the job, whatever restarts it has left, with 128 + signal") {
  struct Row {
    const char* signal;
    int status;
  };
  for (const Row& row : {Row{"INT", 130}, Row{"TERM", 143}, Row{"HUP", 129}}) {
    CAPTURE(row.signal);
    const test::Outcome outcome = run_program(
        std::string("run -n 2 --max-restarts 3 -- bash -c 'echo start $TORCHELASTIC_RESTART_COUNT; if [ $RANK = 0 "
                    "]; then kill -") +
            row.signal + " $PPID; fi; read never < <(exec sleep 32.25)'",
        "", 30);
    CAPTURE(outcome.output);
    CHECK(outcome.status == row.status);
    CHECK_FALSE(contains(outcome.output, "start 1"));
    CHECK_FALSE(contains(outcome.output, "first"));
    CHECK(contains(outcome.output, "brigade run: ended by signal "));
  }
}
