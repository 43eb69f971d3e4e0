// Disk: the calls that write a file, so that tests can make each of them fail, or drop data that was not synced.
#pragma once

#include <sys/types.h>
#include <cstddef>
#include <string>

namespace brigade::detail {

class Disk {
 public:
  virtual ~Disk() = default;
  // Creates a new file for writing; never opens an existing one, and never follows a link. All
  // calls return -1 and set errno on failure.
  virtual int create(const std::string& path);
  virtual ssize_t write(int descriptor, const void* data, size_t bytes);
  virtual int sync(int descriptor);
  virtual int rename(const std::string& from, const std::string& to);
  virtual int sync_folder(const std::string& folder);
  virtual int remove(const std::string& path);

  // The one that makes the system calls.
  static Disk& system();
};

}  // namespace brigade::detail
