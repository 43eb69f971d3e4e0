// Parsing of words and whole numbers in command input.
#include <brigade/lab/options.h>

#include <doctest/doctest.h>

namespace brigade::test::words_test {

TEST_CASE("a whole number is nothing else") {
  CHECK(lab::whole_number("42") == 42);
  CHECK(lab::whole_number("-3") == -3);
  CHECK(lab::whole_number("9223372036854775807") == 9223372036854775807);
  for (const char* other : {"", " 1", "1 ", "1.5", "1e3", "0x1", "+1", "2K", "9223372036854775808"}) {
    CAPTURE(other);
    CHECK(!lab::whole_number(other));
  }
}

TEST_CASE("words are parted by any number of spaces and tabs") {
  CHECK(lab::words_of(" a  bc\td \n") == std::vector<std::string>{"a", "bc", "d"});
  CHECK(lab::words_of(" \t").empty());
}

TEST_CASE("a list of whole numbers is checked word by word, and read") {
  const lab::ValueCheck check = lab::whole_number_from(1, 64);
  CHECK(check.wrong("1") == "");
  CHECK(check.wrong("64") == "");
  CHECK(check.wrong("65") == "expected a whole number from 1 to 64, got '65'");
  CHECK(check.wrong("2.5") == "expected a whole number from 1 to 64, got '2.5'");
  CHECK(lab::numbers_in<int>({"2", "16"}) == std::vector<int>{2, 16});
}

}  // namespace brigade::test::words_test
