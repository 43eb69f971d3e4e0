// `brigade run` with misbehaving ranks: it ends, with the right status, and names the problem.
#include "program.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include <unistd.h>

namespace brigade::test::launcher_test {
using test::contains;
using test::run_program;

TEST_CASE("a daemon that a rank leaves behind does not keep brigade run from ending") {
  // The daemon keeps the rank's streams open; the rank waits until the daemon has left the rank's process group.
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

TEST_CASE("a line of 100 MB without an end passes in linear time, and no byte is lost") {
  for (const std::string prefix : {"", "--no-prefix "}) {
    CAPTURE(prefix);
    const test::Outcome outcome =
        run_program("run -n 1 " + prefix + "-- sh -c 'head -c 100000000 /dev/zero | tr \"\\0\" x' | tr -cd x | wc -c");
    CHECK(contains(outcome.output, "100000000"));
  }
}

TEST_CASE("one rank reads the standard input, the others and ranks without --stdin find nothing there") {
  const std::string ranks = " -n 2 -- sh -c 'while read word; do echo got $word; done; echo end $RANK'";
  const test::Outcome one = run_program("run --stdin 1" + ranks, "printf 'a\\nb\\n' |");
  CAPTURE(one.output);
  CHECK(one.status == 0);
  // The end of rank 0 may come between two lines of rank 1.
  std::string others = one.output;
  const std::string end_of_0 = "[rank 0] end 0\n";
  const std::size_t at = others.find(end_of_0);
  REQUIRE(at != std::string::npos);
  others.erase(at, end_of_0.size());
  CHECK(contains(others, "[rank 1] got a\n[rank 1] got b\n[rank 1] end 1\n"));
  CHECK_FALSE(contains(others, "[rank 0]"));
  const test::Outcome none = run_program("run" + ranks, "printf 'a\\nb\\n' |");
  CHECK(none.status == 0);
  CHECK_FALSE(contains(none.output, "got"));
  CHECK(contains(run_program("run --stdin 2" + ranks).output, "there are ranks 0 to 1"));
}

TEST_CASE("under a terminal, ranks that read find nothing there and end") {
  // script(1) of util-linux gives the program a terminal.
  const std::string in_terminal = "script -qec \"";
  if (std::system("command -v script >/dev/null") != 0) {
    MESSAGE("LEFT OUT: there is no script(1) here");
    return;
  }
  const test::Outcome plain = run_program("run -n 2 -- sh -c 'read line; echo end'\" /dev/null", in_terminal);
  CHECK(contains(plain.output, "[rank 0] end"));
  CHECK(contains(plain.output, "[rank 1] end"));
}

TEST_CASE("a rank that loops or is stopped after the others have ended is named and ended") {
  for (const std::string how :
       {"trap \"\" TERM; while :; do read x < <(exec sleep 33.25); done", "kill -STOP $$", "sleep 33.25"}) {
    CAPTURE(how);
    const test::Outcome outcome =
        run_program("run -n 3 --exit-timeout 0.5 -- bash -c 'if [ $RANK = 1 ]; then " + how + "; fi'");
    CAPTURE(outcome.output);
    CHECK(outcome.status == (how == "sleep 33.25" ? 143 : 137));
    CHECK(contains(outcome.output, "rank 1 was still running 0.5 s after the others had ended (--exit-timeout)"));
  }
  const test::Outcome several =
      run_program("run -n 4 --exit-timeout 0.5 -- bash -c 'if [ $RANK = 1 ] || [ $RANK = 3 ]; then sleep 33.25; fi'");
  CAPTURE(several.output);
  CHECK(several.status == 143);
  CHECK(contains(several.output, "brigade run: ranks 1 and 3 were still running 0.5 s after the others had ended"));
  // 0 means no limit.
  CHECK(run_program("run -n 2 --exit-timeout 0 -- sh -c 'if [ $RANK = 1 ]; then sleep 0.6; fi'").status == 0);
}

TEST_CASE("SIGKILL of brigade run ends its ranks, also behind a wrapper") {
  // Each rank holds the write end of a pipe, behind two shells; the test reads the pipe until all writers are gone.
  const test::Outcome outcome = run_program(
      "run -n 2 -- sh -c 'sh -c \"if [ $RANK = 0 ]; then kill -9 $PPID; fi; sleep 3600; :\"; :' 3>&1 | cat");
  CAPTURE(outcome.output);
  CHECK(outcome.seconds < 200);  // did not wait for the sleeps
}

TEST_CASE("the first to fail is the one whose own error was first, not whoever ended first") {
  // Rank 0 ends at once and reports that rank 1 was the cause.
  const test::Outcome slow = run_program(
      "run -n 2 -- sh -c 'if [ $RANK = 0 ]; then printf \"5 1 1\\nnow\\nlost rank 1\" > $BRIGADE_ERROR_FILE; exit 3; fi; "
      "sleep 0.5; exit 7'",
      "", 20);
  CAPTURE(slow.output);
  CHECK(slow.status == 7);
  CHECK(contains(slow.output, "brigade run: rank 1 exited with status 7 first"));
  // A rank returns from main while the others are in a collective.
  const test::Outcome left = run_program("run -n 3 -- " RAISE_VERDICT " shm gone uncaught");
  CAPTURE(left.output);
  CHECK(left.status == 134);
  CHECK(contains(left.output, "brigade run: rank 2 exited with status 0 first, while other ranks still needed it"));
}

TEST_CASE("a rank that leaves or never comes before the ranks have met is named, also without a folder for its word") {
  const std::string meets = "exec " RAISE_VERDICT " shm gone uncaught";
  for (const char* variables : {"", "TMPDIR=/nowhere", "TMPDIR=/proc"}) {  // not even root can write to /proc
    CAPTURE(variables);
    // Its peers do not wait for their time-out of 5 minutes.
    const test::Outcome left =
        run_program("run -n 3 -- sh -c 'if [ $RANK = 1 ]; then exit 0; fi; " + meets + "'", variables, 60);
    CAPTURE(left.output);
    CHECK(left.status == 134);
    CHECK(contains(left.output, "brigade run: rank 1 exited with status 0 first, while other ranks still needed it"));
    CHECK(contains(
        left.output,
        " stopped waiting for rank 1: the process of rank 1 exited with status 0 before it joined; check the output of rank 1"));
  }
  const test::Outcome never =
      run_program("run -n 2 -- sh -c 'if [ $RANK = 1 ]; then exec sleep 36.25; fi; " + meets + "'",
                  "BRIGADE_MEETING_TIMEOUT=0.3", 30);
  CAPTURE(never.output);
  CHECK(never.status == 134);
  CHECK(contains(never.output, "brigade run: rank 1 was still running when other ranks stopped waiting for it"));
}

TEST_CASE("brigade run ends where standard descriptors are closed, and what it cannot write is no success") {
  struct Row {
    const char* redirections;
    int status;
    const char* output;
  };
  // The trailing # comments out the redirection with which the test collects the output.
  for (const Row& row :
       {Row{"2>&1 >&- #", 3, "could be passed on: Bad file descriptor"}, Row{"2>&- #", 0, "[rank 1] hi"},
        Row{"2>&1 <&- #", 0, "[rank 1] hi"}, Row{"<&- >&- 2>&- #", 3, ""}}) {
    CAPTURE(row.redirections);
    const test::Outcome outcome = run_program(std::string("run -n 2 -- echo hi ") + row.redirections, "", 20);
    CHECK(outcome.status == row.status);
    CHECK_MESSAGE(contains(outcome.output, row.output), outcome.output);
  }
  // Files that the program opens do not get the closed descriptor numbers.
  const test::Outcome other = run_program("doctor 2>&1 >&- #", "", 20);
  CHECK(other.status == 3);
  CHECK_MESSAGE(contains(other.output, "standard output: Bad file descriptor"), other.output);
}

TEST_CASE("a signal while ranks run ends the command that started them, with 128 + signal, and no rank is lost") {
  const std::string metrics =
      (std::filesystem::temp_directory_path() / ("brigade-int-" + std::to_string(getpid()))).string();
  const test::Outcome outcome = run_program(
      "train digits --ranks 2 --epochs 100000 --quiet --metrics " + metrics + " 2>&1 & until [ -s " + metrics +
          " ]; do :; done; kill -INT $(ps -o pid= --ppid $! | head -1); wait $!; echo status $?; rm -f " + metrics,
      "", 60);
  CAPTURE(outcome.output);
  CHECK(contains(outcome.output, "brigade: ended by signal 2 (Interrupt)\n"));
  CHECK(contains(outcome.output, "status 130\n"));
  CHECK_FALSE(contains(outcome.output, "lost"));
}

TEST_CASE("--timeout reaches the ranks, and its limits are reported") {
  CHECK(contains(run_program("run -n 1 --timeout 2.5 -- sh -c 'echo waits $BRIGADE_TIMEOUT s'").output, "waits 2.5 s"));
  for (const char* bad : {"0", "-1", "nan", "1e9"}) {
    CAPTURE(bad);
    CHECK(run_program(std::string("run -n 1 --timeout ") + bad + " -- true").status == 2);
  }
}

TEST_CASE("error files lie in a folder of their owner, which goes with brigade run, also with one that is killed") {
  for (const std::string last : {"exit 4", "if [ $RANK = 0 ]; then kill -9 $PPID; fi; sleep 35.25"}) {
    CAPTURE(last);
    // The folder name goes through the test's own pipe: the launcher may be killed before it forwards a line.
    const std::string command =
        "run -n 2 -- sh -c 'd=$(dirname $BRIGADE_ERROR_FILE); stat -c \"%a $d\" $d >&3; " + last + "' 3>&1 | cat";
    const test::Outcome outcome = run_program(command);
    CAPTURE(outcome.output);
    const size_t at = outcome.output.find("700 /");
    REQUIRE(at != std::string::npos);
    const std::string folder = outcome.output.substr(at + 4, outcome.output.find('\n', at) - at - 4);
    for (int tries = 0; tries < 6000 && std::filesystem::exists(folder); ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK_FALSE(std::filesystem::exists(folder));
  }
}

TEST_CASE("a command that starts its ranks itself leaves no folder in the temporary one, also when it is killed") {
  std::string own = (std::filesystem::temp_directory_path() / "brigade-test-XXXXXX").string();
  REQUIRE(mkdtemp(own.data()));
  // The launcher is killed as soon as its folder has content.
  const test::Outcome outcome = run_program(
      "diagnose UNU-01 --backend shm --ranks 2 & until ls -d " + own +
          "/brigade-job-*/arguments >/dev/null; do :; done 2>/dev/null; kill -9 $(ps -o pid= --ppid $! | head -1); wait; echo ended",
      "TMPDIR=" + own);
  CAPTURE(outcome.output);
  for (int tries = 0; tries < 6000 && !std::filesystem::is_empty(own); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(std::filesystem::is_empty(own));
  std::filesystem::remove_all(own);
}

}  // namespace brigade::test::launcher_test
