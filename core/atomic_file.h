// A file that appears whole or not at all.
//
// The bytes go to a new file next to the target, "<path>.partial-" and 16 unpredictable digits.
// commit() flushes them to the disk (fsync), gives the file its name in one step (rename), and
// flushes the folder as well. If anything fails before the rename (a full disk, an exception, a
// kill, a power cut), the old file stays as it was; after commit() has returned, the new file is in
// place.
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
  // Begins a new file; a link at `path` is followed. Removes files that killed processes of the
  // same user left there. Two writers of one file do not mix: the last commit wins. Throws IoError
  // if the file cannot be created, or if `path` exists and is not a regular file (a folder, a
  // device, a pipe). `disk`: for tests.
  explicit AtomicFile(const std::string& path);
  AtomicFile(const std::string& path, detail::Disk& disk);
  // Without commit(): removes what was written.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends. Throws IoError that names the file, the bytes written so far, and the reason.
  void write(const void* data, size_t bytes);
  // Nothing may be written afterwards. Throws IoError; the old file then stays, unless only the
  // sync of the folder failed.
  void commit();

 private:
  void begin();
  void take_permissions();
  void remove_left_over() const;
  [[noreturn]] void fail(const char* action) const;

  detail::Disk& disk_;
  std::string path_;     // as given
  std::string target_;   // with links followed
  std::string partial_;  // where the file is until commit()
  int descriptor_ = -1;
  uint64_t written_ = 0;
};

// Writes a text: whole or not at all if `path` is a regular file or does not exist, directly if it
// is a device or a pipe (/dev/stdout, a shell's >(...)). Throws IoError if not all of it was
// written, or if the pipe has no reader.
void write_file(const std::string& path, std::string_view text);
// Throws IoError if write_file could not begin; leaves nothing behind.
void check_writable(const std::string& path);

}  // namespace brigade
