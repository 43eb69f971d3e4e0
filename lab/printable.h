// What the program prints may hold names and texts out of files: no control character of theirs
// reaches the terminal.
#pragma once

#include <ostream>
#include <streambuf>

namespace brigade::lab {

// While it lives, characters of `stream` that control a terminal (all of ASCII's but the newline
// and the tab, and Unicode's from U+0080 to U+009F) are written as \x1b, \x9b, ...; all others as
// they are.
class Printable : public std::streambuf {
 public:
  explicit Printable(std::ostream& stream) : stream_(stream), to_(stream.rdbuf(this)) {}
  ~Printable() override;
  Printable(const Printable&) = delete;
  Printable& operator=(const Printable&) = delete;

  // Why the stream took no more, as errno says it; 0 while it takes everything.
  int reason() const noexcept { return reason_; }

 protected:
  int overflow(int character) override;
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  int sync() override;

 private:
  bool put(unsigned char byte);
  bool noted(bool done);
  bool put_begun();

  std::ostream& stream_;
  std::streambuf* to_;
  int reason_ = 0;
  bool begun_ = false;  // the first byte of U+0080 to U+00BF is held back
};

}  // namespace brigade::lab
