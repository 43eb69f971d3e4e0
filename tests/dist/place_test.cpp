// A place in the user's source: from a location, in words, and as ranks exchange it.
#include <brigade/core/error.h>
#include <brigade/dist/diagnosis/json.h>
#include <brigade/dist/diagnosis/place.h>

#include <doctest/doctest.h>

#include <string>

using namespace brigade;
using dist::Place;

TEST_CASE("a place made from a location has its line, and the file with its folder as messages name it") {
  const int here = __LINE__ + 1;
  const Place place = SourceLocation::current();
  CHECK(place);
  CHECK(place.file == "dist/place_test.cpp");
  CHECK(place.line == static_cast<uint32_t>(here));
  CHECK(to_string(place) == "dist/place_test.cpp:" + std::to_string(here));
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

TEST_CASE("a place goes through text unharmed: colons and quotes in the file, and no place at all") {
  for (const Place& place : {Place("train.cpp", 12), Place("a:7/\"b\":3.cpp", 4294967295u), Place()})
    CHECK(dist::decoded<Place>(dist::to_text(place)) == place);
  CHECK(dist::to_text(Place("train.cpp", 12)) == R"({"file":"train.cpp","line":12})");
}

TEST_CASE("what is no place is refused") {
  CHECK_THROWS_AS(dist::decoded<Place>(R"("train.cpp:12")"), DistError);
  CHECK_THROWS_AS(dist::decoded<Place>(R"({"file":"train.cpp"})"), DistError);
}
