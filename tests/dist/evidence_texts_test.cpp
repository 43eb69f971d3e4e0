// Places and histories of uses, as ranks exchange them and as texts.
#include <brigade/core/error.h>
#include <brigade/core/place.h>
#include <brigade/dist/errors/json.h>
#include <brigade/dist/errors/named_parameter.h>

#include <doctest/doctest.h>

namespace brigade::test::evidence_texts_test {

TEST_CASE("a place goes through text unharmed: colons and quotes in the file, and no place at all") {
  for (const Place& place : {Place("train.cpp", 12), Place("a:7/\"b\":3.cpp", 4294967295u), Place()})
    CHECK(dist::decoded<Place>(dist::to_text(place)) == place);
  CHECK(dist::to_text(Place("train.cpp", 12)) == R"({"file":"train.cpp","line":12})");
}

TEST_CASE("what is no place is refused") {
  CHECK_THROWS_AS(dist::decoded<Place>(R"("train.cpp:12")"), DistError);
  CHECK_THROWS_AS(dist::decoded<Place>(R"({"file":"train.cpp"})"), DistError);
}

using brigade::dist::UseHistory;

std::string words(std::initializer_list<uint64_t> used, uint64_t now) {
  UseHistory history;
  for (const uint64_t backward : used)
    history.add(backward);
  return history.in_words(now);
}

TEST_CASE("the history of uses tells ranges and the gaps between them, and of many the latest three") {
  CHECK(words({}, 3) == "");
  CHECK(words({1}, 2) == "used in backward 1, not in 2");
  CHECK(words({1, 2, 3}, 4) == "used in backwards 1 to 3, not in 4");
  CHECK(words({1, 2, 3}, 7) == "used in backwards 1 to 3, not since 4");
  CHECK(words({1, 2, 3, 7, 8, 9}, 12) == "used in backwards 1 to 3 and 7 to 9, not in 4 to 6 and since 10");
  CHECK(words({1, 3, 5}, 6) == "used in backwards 1, 3 and 5, not in 2, 4 and 6");
  CHECK(words({1, 3, 5, 7, 9}, 12) == "lately used in backwards 5, 7 and 9, not in 6, 8 and since 10");
  UseHistory twice;
  twice.add(4);
  twice.add(4);
  CHECK(twice.in_words(5) == "used in backward 4, not in 5");
}

}  // namespace brigade::test::evidence_texts_test
