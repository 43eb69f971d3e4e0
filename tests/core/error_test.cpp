// Errors: the message with its text, arguments and the user's line; places in the user's source; captured warnings.
#include <brigade/core/error.h>
#include <brigade/core/place.h>
#include <brigade/core/shape.h>
#include <brigade/core/warning.h>

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace brigade::test::error_test {
namespace {
constexpr std::source_location kNowhere = {};
}

TEST_CASE("each {} is replaced by an argument: text, numbers in their shortest form, anything else by to_string") {
  const std::string name = "weight";
  CHECK(std::string(ValueError("{}: expected {} of {}, got {}", name, 3, "four", Shape{2, 3}).what()) ==
        "weight: expected 3 of four, got " + to_string(Shape{2, 3}));
  CHECK(std::string(ValueError("{} {} {} {} {}", 0.1, 0.1F, int64_t{-7}, true, 'x').what()) == "0.1 0.1 -7 true x");
  CHECK(std::string(ValueError("{} {} {} {} {}", 1e5, 0.0, -2.5e-4, 3e20, 1e-9).what()) ==
        "100000 0 -0.00025 3e+20 1e-09");
  CHECK(std::string(ValueError("{}", "{}").what()) == "{}");
}

TEST_CASE("text without arguments stays as it is, braces included") {
  CHECK(std::string(ValueError("a set {}").what()) == "a set {}");
  CHECK(std::string(IoError(std::string("{\"a\": 1}")).what()) == "{\"a\": 1}");
}

TEST_CASE("a message ends with the user's line, once") {
  const auto here = std::source_location::current();
  const std::string place = to_string(here);
  REQUIRE(place.find("error_test.cpp:") != std::string::npos);
  const ShapeError with_arguments(here, "cat: got {}", 1), plain("cat: got 1", here);
  const std::string expected = "cat: got 1 (called at " + place + ")";
  CHECK(with_arguments.what() == expected);
  CHECK(plain.what() == expected);
  CHECK(plain.where().line() == here.line());
  CHECK(std::string(ShapeError("queued at " + place, here).what()) == "queued at " + place);
  CHECK(std::string(ShapeError("queued at " + place + "0", here).what()) ==
        "queued at " + place + "0 (called at " + place + ")");
  CHECK(std::string(ShapeError(kNowhere, "cat: got {}", 1).what()) == "cat: got 1");
}

TEST_CASE("an error of any kind takes its words in each of these ways") {
  CHECK(std::string(TimeoutError("rank {}", 3).what()) == "rank 3");
  CHECK_THROWS_AS(throw TimeoutError("rank {}", 3), DistError);
}

TEST_CASE("a place made from a location has its line, and the file with its folder as messages name it") {
  const int here = __LINE__ + 1;
  const Place place = SourceLocation::current();
  CHECK(place);
  CHECK(place.file == "core/error_test.cpp");
  CHECK(place.line == static_cast<uint32_t>(here));
  CHECK(to_string(place) == "core/error_test.cpp:" + std::to_string(here));
}

TEST_CASE("a place and its location have the same text") {
  const SourceLocation where = SourceLocation::current();
  CHECK(to_string(Place(where)) == to_string(where));
  CHECK(to_string(Place(SourceLocation())) == to_string(SourceLocation()));
}

TEST_CASE("the place of no location is not known, and has no text") {
  const Place place = SourceLocation();
  CHECK(!place);
  CHECK(place == Place());
  CHECK(place.file.empty());
  CHECK(place.line == 0);
  CHECK(to_string(place).empty());
}

TEST_CASE("places are equal in file and line") {
  CHECK(Place("train.cpp", 12) == Place("train.cpp", 12));
  CHECK(Place("train.cpp", 12) != Place("train.cpp", 13));
  CHECK(Place("train.cpp", 12) != Place("model.cpp", 12));
}

namespace {

// What a process prints for a warning whose standard error is a terminal.
std::string shown_on_a_terminal(const char* no_color) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  REQUIRE(grantpt(terminal) == 0);
  REQUIRE(unlockpt(terminal) == 0);
  const int end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  REQUIRE(end >= 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(end, STDERR_FILENO);
    if (no_color) setenv("NO_COLOR", no_color, 1);
    tell({"Not averaged: w.\nwhy: no reason.", "nothing."});
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  char text[512] = {};
  const ssize_t size = read(terminal, text, sizeof text - 1);
  close(end);
  close(terminal);
  return {text, text + std::max<ssize_t>(size, 0)};
}

}  // namespace

TEST_CASE("on a terminal the first line of a warning is bold, unless NO_COLOR is set") {
  CHECK(shown_on_a_terminal(nullptr) ==
        "\x1b[1mbrigade: warning: Not averaged: w.\x1b[0m\r\nwhy: no reason.\r\ndo:  nothing.\r\n");
  CHECK(shown_on_a_terminal("1") == "brigade: warning: Not averaged: w.\r\nwhy: no reason.\r\ndo:  nothing.\r\n");
}

TEST_CASE("a collector keeps each warning of its thread once, also one that was reported before") {
  std::vector<std::string> told;
  const auto before = set_warning_handler([&](const Warning& warning) { told.push_back(warning.message); });
  warn({"collector test: first", "advice"});
  {
    const WarningCollector outer;
    warn({"collector test: first", "advice"});
    warn({"collector test: first", "advice"});
    {
      const WarningCollector inner;
      tell({"collector test: second", "advice"});
      CHECK(inner.warnings().size() == 1);
    }
    std::thread([] { warn({"collector test: third", "advice"}); }).join();
    REQUIRE(outer.warnings().size() == 1);
    CHECK(outer.warnings()[0].message == "collector test: first");
    CHECK(outer.warnings()[0].advice == "advice");
  }
  // A warning that a collector captured does not count as reported: it reaches the handler when it is repeated.
  warn({"collector test: second", "advice"});
  set_warning_handler(before);
  CHECK(told == std::vector<std::string>{"collector test: first", "collector test: third", "collector test: second"});
}

}  // namespace brigade::test::error_test
