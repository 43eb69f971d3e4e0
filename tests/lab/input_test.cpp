// Parsing of words and numbers in command input, and the nesting depth of external JSON.
#include <brigade/lab/json.h>
#include <brigade/lab/options.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace brigade::test::input_test {

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

using brigade::lab::parse_json;

std::string lists(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST_CASE("JSON is read to a depth of 64, in lists and in objects") {
  CHECK(parse_json(R"({"a": [1, 2.5, {"b": null}], "c": "text"})") ==
        nlohmann::json{{"a", {1, 2.5, {{"b", nullptr}}}}, {"c", "text"}});
  for (const size_t depth : {1, 2, 63, 64}) {
    CAPTURE(depth);
    CHECK(parse_json(lists(depth)).dump() == lists(depth));
  }
  for (const size_t depth : {65, 66, 5'000'000}) {
    CAPTURE(depth);
    CHECK(parse_json(lists(depth)).is_discarded());
    CHECK(parse_json("[1, {\"a\": " + lists(depth - 1) + "}, 2]").is_discarded());
  }
}

TEST_CASE("the depth is that of brackets, not of what strings hold") {
  const std::string many(100, '[');
  for (const std::string& text : {many, "\\\"" + many, many + "\\\\"}) {
    CAPTURE(text);
    CHECK(parse_json("[\"" + text + "\"]").is_array());
    CHECK(parse_json("[\"" + text + "\", " + lists(64) + "]").is_discarded());
  }
}

// As long as a trace of a million events: with a parser that scans the whole list at the end of each object, this case
// would hit the time limit of the test.
TEST_CASE("a list of a million objects takes a time that grows with its length") {
  std::string text = "[{}";
  for (int i = 1; i < 1'000'000; ++i)
    text += ",{}";
  CHECK(parse_json(text + "]").size() == 1'000'000);
}

TEST_CASE("what is not JSON is discarded") {
  for (const char* text : {"", "{", "[1,]", "nothing", "{\"a\": 1} 2", "\xff"}) {
    CAPTURE(text);
    CHECK(parse_json(text).is_discarded());
  }
}

}  // namespace brigade::test::input_test
