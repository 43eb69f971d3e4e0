// A stream buffer that escapes control characters on their way to another.
#include <brigade/lab/printable.h>

#include <cerrno>

namespace brigade::lab {

namespace {

constexpr unsigned char kFirstByte = 0xc2;  // in UTF-8, of U+0080 to U+00BF

bool put_escaped(std::streambuf& to, unsigned char byte) {
  constexpr const char* kDigits = "0123456789abcdef";
  const char text[] = {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
  return to.sputn(text, 4) == 4;
}

}  // namespace

Printable::~Printable() {
  put_begun();
  stream_.rdbuf(to_);
}

bool Printable::noted(bool done) {
  if (!done && reason_ == 0) reason_ = errno;
  return done;
}

bool Printable::put_begun() {
  if (!begun_) return true;
  begun_ = false;
  return to_->sputc(static_cast<char>(kFirstByte)) != traits_type::eof();
}

bool Printable::put(unsigned char byte) {
  if (begun_ && byte >= 0x80 && byte < 0xa0) {
    begun_ = false;
    return put_escaped(*to_, byte);
  }
  if (!put_begun()) return false;
  if (byte == kFirstByte) return begun_ = true;
  if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) return put_escaped(*to_, byte);
  return to_->sputc(static_cast<char>(byte)) != traits_type::eof();
}

int Printable::overflow(int character) {
  if (character == traits_type::eof()) return sync() == 0 ? 0 : traits_type::eof();
  return noted(put(static_cast<unsigned char>(character))) ? character : traits_type::eof();
}

std::streamsize Printable::xsputn(const char* text, std::streamsize count) {
  std::streamsize done = 0;
  while (done < count && noted(put(static_cast<unsigned char>(text[done]))))
    ++done;
  return done;
}

int Printable::sync() { return noted(put_begun() && to_->pubsync() == 0) ? 0 : -1; }

}  // namespace brigade::lab
