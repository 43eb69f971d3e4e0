// Control characters do not reach the terminal.
#include <brigade/lab/terminal.h>

#include <doctest/doctest.h>

#include <sstream>
#include <streambuf>
#include <string>
#include <vector>

namespace brigade::test::printable_test {

using brigade::lab::Printable;

std::string printed(const std::string& text) {
  std::ostringstream out;
  {
    const Printable printable(out);
    out << text;
  }
  return out.str();
}

TEST_CASE("characters that control a terminal are written as numbers, and no others") {
  CHECK(printed("a\tb\nc") == "a\tb\nc");
  CHECK(printed("\x1b[31mred\x1b[0m") == "\\x1b[31mred\\x1b[0m");
  CHECK(printed(std::string("\0\x01\r\x7f~ ", 6)) == "\\x00\\x01\\x0d\\x7f~ ");
  CHECK(printed("ü © 漢字 😀") == "ü © 漢字 😀");
  CHECK(printed("\xc2\x9b"
                "31m") == "\\x9b31m");  // U+009B is equivalent to ESC [
  CHECK(printed("\xc2\x80\xc2\x9f\xc2\xa0\xc2") == "\\x80\\x9f\xc2\xa0\xc2");
  CHECK(printed("\xc2\xc2\x9b") == "\xc2\\x9b");
}

TEST_CASE("a character that comes in two pieces is seen, and the stream is given back") {
  std::ostringstream out;
  {
    const Printable printable(out);
    out << '\xc2' << std::string("\x9b");
    out.put('\x1b');
    out << "." << std::flush;
    CHECK(out.str() == "\\x9b\\x1b.");
  }
  out << "\x1b";
  CHECK(out.str() == "\\x9b\\x1b.\x1b");
}

TEST_CASE("what is written at once goes on at once, so that texts of several ranks do not mix") {
  struct Pieces : std::streambuf {
    std::vector<std::string> taken;
    int overflow(int character) override {
      taken.emplace_back(1, static_cast<char>(character));
      return character;
    }
    std::streamsize xsputn(const char* text, std::streamsize count) override {
      taken.emplace_back(text, static_cast<size_t>(count));
      return count;
    }
  } pieces;
  std::ostream stream(&pieces);
  const Printable printable(stream);
  stream << "a text\x1b of ü\n";
  CHECK(pieces.taken == std::vector<std::string>{"a text\\x1b of ü\n"});
}

TEST_CASE("a stream that takes no more says so") {
  std::ostream nowhere(nullptr);
  std::stringbuf full(std::ios::in);
  nowhere.rdbuf(&full);
  const Printable printable(nowhere);
  nowhere << "text";
  CHECK_FALSE(nowhere.good());
}

}  // namespace brigade::test::printable_test
