// A place in the user's source: constructed from a source location, and converted to text.
#include <brigade/core/place.h>

#include <doctest/doctest.h>

#include <string>

namespace brigade::test::place_test {

TEST_CASE("a place made from a location has its line, and the file with its folder as messages name it") {
  const int here = __LINE__ + 1;
  const Place place = SourceLocation::current();
  CHECK(place);
  CHECK(place.file == "core/place_test.cpp");
  CHECK(place.line == static_cast<uint32_t>(here));
  CHECK(to_string(place) == "core/place_test.cpp:" + std::to_string(here));
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

}  // namespace brigade::test::place_test
