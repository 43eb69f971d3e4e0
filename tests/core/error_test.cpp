// The message of an error: its text, the arguments that replace {}, and the user's line at its end.
#include <brigade/core/error.h>
#include <brigade/core/shape.h>

#include <doctest/doctest.h>

#include <string>

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

}  // namespace brigade::test::error_test
