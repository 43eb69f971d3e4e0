// What the program prints may hold names and texts out of files: no control character of theirs
// reaches the terminal.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>

namespace brigade::lab {

// While it lives, characters of `stream` that control a terminal (all of ASCII's but the newline
// and the tab, and Unicode's from U+0080 to U+009F) are written as \x1b, \x9b, ...; all others as
// they are. A text that is written to it at once goes on at once: standard error has no buffer of its own, and the
// ranks of a job share it.
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
  void append(std::string& text, unsigned char byte);
  bool noted(bool done);
  bool put_begun();

  std::ostream& stream_;
  std::streambuf* to_;
  int reason_ = 0;
  bool begun_ = false;  // the first byte of U+0080 to U+00BF is held back
};

}  // namespace brigade::lab
