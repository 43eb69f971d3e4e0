// A file that appears whole or not at all.
//
// The bytes go to a new file beside the target, "<path>.partial-" and 16 digits that nobody can
// foresee. commit() brings them to the disk (fsync), gives the file its name in one step (rename),
// and brings the folder to the disk as well. Whatever fails before the rename, a full disk, an
// exception, a kill, a power cut, the old file stands as it was; after commit() has returned, the
// new one does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace brigade {

namespace detail {
class Disk;
}

class AtomicFile {
 public:
  // Begins a new file; a link at `path` is followed. Removes what killed processes of the same user
  // left there. Two writers of one file do not mix: the one that commits last stands. Throws
  // IoError when it cannot be made, or when `path` is there and is not a regular file (a folder, a
  // device, a pipe). `disk`: tests put their own there.
  explicit AtomicFile(const std::string& path);
  AtomicFile(const std::string& path, detail::Disk& disk);
  // Without commit(): removes what was written.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends. Throws IoError that names the file, how far it came, and the reason.
  void write(const void* data, size_t bytes);
  // Nothing may be written after it. Throws IoError; the old file then stands.
  void commit();

 private:
  void begin();
  void take_permissions();
  void remove_left_over() const;
  [[noreturn]] void fail(const char* action) const;

  detail::Disk& disk_;
  std::string path_;     // as given
  std::string target_;   // where it goes
  std::string partial_;  // where it is until then
  int descriptor_ = -1;
  uint64_t written_ = 0;
};

// Writes a text: whole or not at all where `path` is a regular file or is free, at once where it is
// a device or a pipe (/dev/stdout, a shell's >(...)). Throws IoError when not all of it arrived, or
// nobody reads the pipe.
void write_file(const std::string& path, std::string_view text);
// Throws IoError where write_file would do so already; leaves nothing behind.
void check_writable(const std::string& path);

}  // namespace brigade
