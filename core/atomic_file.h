// A file that appears whole or not at all.
//
// The bytes go to a file beside the target, "<path>.partial". commit() brings them to the disk
// (fsync), gives the file its name in one step (rename), and brings the folder to the disk as well.
// Whatever fails before the rename, a full disk, an exception, a kill, a power cut, the old file
// stands as it was; after commit() has returned, the new one does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace brigade {

class AtomicFile {
 public:
  // Opens "<path>.partial"; a link at `path` is followed. What a killed process left there is
  // written over. Throws IoError when it cannot be made, or when it is being written at this moment
  // by another process or thread.
  explicit AtomicFile(const std::string& path);
  // Without commit(): removes what was written.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends. Throws IoError that names the file, how far it came, and the reason.
  void write(const void* data, size_t bytes);
  // Nothing may be written after it. Throws IoError; the old file then stands.
  void commit();

 private:
  [[noreturn]] void fail(const char* action) const;

  std::string path_;     // as given
  std::string target_;   // where it goes
  std::string partial_;  // where it is until then
  int descriptor_ = -1;
  uint64_t written_ = 0;
};

}  // namespace brigade
