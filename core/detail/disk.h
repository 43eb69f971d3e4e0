// The calls by which a file is written, so that tests can let each of them fail, or lose what was
// not brought to the disk.
#pragma once

#include <sys/types.h>
#include <cstddef>
#include <string>

namespace brigade::detail {

class Disk {
 public:
  virtual ~Disk() = default;
  // A new file, to write; never one that is there, and never through a link. All calls give -1 and
  // set errno where they fail.
  virtual int create(const std::string& path);
  virtual ssize_t write(int descriptor, const void* data, size_t bytes);
  virtual int sync(int descriptor);
  virtual int rename(const std::string& from, const std::string& to);
  virtual int sync_folder(const std::string& folder);
  virtual int remove(const std::string& path);

  // The machine's own.
  static Disk& system();
};

}  // namespace brigade::detail
