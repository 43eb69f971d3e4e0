// A place in the user's source as ranks exchange it.
#include <brigade/core/error.h>
#include <brigade/core/place.h>
#include <brigade/dist/errors/json.h>

#include <doctest/doctest.h>

namespace brigade::test::place_test {

TEST_CASE("a place goes through text unharmed: colons and quotes in the file, and no place at all") {
  for (const Place& place : {Place("train.cpp", 12), Place("a:7/\"b\":3.cpp", 4294967295u), Place()})
    CHECK(dist::decoded<Place>(dist::to_text(place)) == place);
  CHECK(dist::to_text(Place("train.cpp", 12)) == R"({"file":"train.cpp","line":12})");
}

TEST_CASE("what is no place is refused") {
  CHECK_THROWS_AS(dist::decoded<Place>(R"("train.cpp:12")"), DistError);
  CHECK_THROWS_AS(dist::decoded<Place>(R"({"file":"train.cpp"})"), DistError);
}

}  // namespace brigade::test::place_test
