// Reads through zlib, a piece at a time.
#include <brigade/data/detail/image_files.h>

#include <brigade/core/detail/files.h>
#include <brigade/core/error.h>

#include <zlib.h>

#include <cerrno>
#include <cstring>

namespace brigade::data::detail {

std::string read_gzip(const std::string& path, size_t most, std::string_view expected) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (!file) throw IoError("cannot open {}: {}", path, std::strerror(errno));
  struct Close {
    gzFile file;
    ~Close() { gzclose(file); }
  } const close{file};
  std::string bytes;
  char buffer[1 << 16];
  while (true) {
    const int count = gzread(file, buffer, sizeof buffer);
    if (count > 0) bytes.append(buffer, static_cast<size_t>(count));
    if (bytes.size() > most) throw IoError("{} unpacks to more than {} MiB; expected {}", path, most >> 20, expected);
    if (count < static_cast<int>(sizeof buffer)) {
      int code = Z_OK;
      const char* message = gzerror(file, &code);
      // A file that ends inside the stream reads as a short read with Z_BUF_ERROR.
      if (count < 0 || code == Z_BUF_ERROR) {
        throw IoError("{} is damaged or truncated: {} after {} unpacked bytes; get the file again", path,
                      code == Z_BUF_ERROR ? "unexpected end of file" : message, bytes.size());
      }
      break;
    }
  }
  if (gzdirect(file) && !bytes.empty()) throw IoError("{} is not a gzip file; expected {}", path, expected);
  return bytes;
}

std::string read_file(const std::string& path, size_t most, std::string_view expected) {
  const brigade::detail::InputFile file(path);
  if (file.size() >= 2) {
    char magic[2];
    file.read(0, magic, sizeof magic);
    if (magic[0] == '\x1f' && magic[1] == '\x8b') return read_gzip(path, most, expected);
  }
  if (file.size() > most) throw IoError("{} has {} bytes; expected {}", path, file.size(), expected);
  std::string bytes(static_cast<size_t>(file.size()), '\0');
  file.read(0, bytes.data(), bytes.size());
  return bytes;
}

}  // namespace brigade::data::detail
