// Keeps control characters in printed names and texts, which may come from files, from reaching the terminal.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>

namespace brigade::lab {

// During its lifetime, characters written to `stream` that control a terminal (all of ASCII's except newline and
// tab, and Unicode's from U+0080 to U+009F) are written as \x1b, \x9b, ...; all others unchanged. A text written in
// one call is passed on in one call: standard error has no buffer of its own, and the ranks of a job share it.
class Printable : public std::streambuf {
 public:
  explicit Printable(std::ostream& stream) : stream_(stream), to_(stream.rdbuf(this)) {}
  ~Printable() override;
  Printable(const Printable&) = delete;
  Printable& operator=(const Printable&) = delete;

  // The errno of the first failed write; 0 while none has failed.
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
