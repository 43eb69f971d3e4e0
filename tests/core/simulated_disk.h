// Simulated disks for tests of file writes: one fails from a chosen call on; the other records its calls, so that tests
// can enumerate all states in which a power cut may leave a file.
#pragma once

#include <brigade/core/detail/files.h>

#include <cerrno>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace brigade::test {

// From call number `first` (counted from 0) on, every call fails with `reason`. If that call is a write, it writes half
// of its bytes.
class FailingDisk : public detail::Disk {
 public:
  FailingDisk(int first, int reason) : first_(first), reason_(reason) {}
  bool has_failed() const { return calls_ > first_; }

  int create(const std::string& path) override { return works() ? Disk::create(path) : -1; }
  ssize_t write(int descriptor, const void* data, size_t bytes) override {
    if (!works() && (calls_ != first_ + 1 || bytes < 2)) return -1;
    return Disk::write(descriptor, data, has_failed() ? bytes / 2 : bytes);
  }
  int sync(int descriptor) override { return works() ? Disk::sync(descriptor) : -1; }
  int rename(const std::string& from, const std::string& to) override { return works() ? Disk::rename(from, to) : -1; }
  int sync_folder(const std::string& folder) override { return works() ? Disk::sync_folder(folder) : -1; }

 private:
  bool works() {
    errno = reason_;
    return calls_++ < first_;
  }

  int first_;
  int reason_;
  int calls_ = 0;
};

struct DiskCall {
  enum Kind { Create, Write, Sync, Rename, SyncFolder, Remove } kind;
  int file = 0;       // created file that the call is about, from 1; 0: the original file
  std::string name;   // Create, Rename (old name), Remove
  std::string after;  // Rename: the new name
  std::string data;   // Write
};

class RecordingDisk : public detail::Disk {
 public:
  const std::vector<DiskCall>& calls() const { return calls_; }

  int create(const std::string& path) override {
    const int descriptor = Disk::create(path);
    const int file = static_cast<int>(of_name_.size()) + 1;
    of_descriptor_[descriptor] = of_name_[path] = file;
    calls_.push_back({DiskCall::Create, file, path, "", ""});
    return descriptor;
  }
  ssize_t write(int descriptor, const void* data, size_t bytes) override {
    calls_.push_back({DiskCall::Write, of_descriptor_[descriptor], "", "", {static_cast<const char*>(data), bytes}});
    return Disk::write(descriptor, data, bytes);
  }
  int sync(int descriptor) override {
    calls_.push_back({DiskCall::Sync, of_descriptor_[descriptor], "", "", ""});
    return Disk::sync(descriptor);
  }
  int rename(const std::string& from, const std::string& to) override {
    calls_.push_back({DiskCall::Rename, of_name_[from], from, to, ""});
    return Disk::rename(from, to);
  }
  int sync_folder(const std::string& folder) override {
    calls_.push_back({DiskCall::SyncFolder, 0, "", "", ""});
    return Disk::sync_folder(folder);
  }
  int remove(const std::string& path) override {
    calls_.push_back({DiskCall::Remove, of_name_[path], path, "", ""});
    return Disk::remove(path);
  }

 private:
  std::vector<DiskCall> calls_;
  std::map<int, int> of_descriptor_;
  std::map<std::string, int> of_name_;
};

inline const std::string kNoFile = "(no file)";

// All contents that `path` may have if the power fails after these calls. Assumes the worst disk: any part of the data
// that was not synced may be present or missing, in any order, and torn; names and contents reach the disk
// independently. `old` is the content before the calls, or kNoFile.
inline std::set<std::string> after_power_cut(const std::vector<DiskCall>& calls, const std::string& path,
                                             const std::string& old) {
  struct Written {
    std::string data;
    bool safe = false;  // synced to the disk
  };
  std::map<int, std::vector<Written>> files;
  std::map<std::string, int> names;  // synced to the disk
  std::vector<DiskCall> waiting;     // name changes that may or may not be on the disk
  if (old != kNoFile) names[path] = 0;
  files[0] = {{old, true}};
  const auto apply = [](std::map<std::string, int>& to, const DiskCall& call) {
    if (call.kind != DiskCall::Create) to.erase(call.name);
    if (call.kind == DiskCall::Create) to[call.name] = call.file;
    if (call.kind == DiskCall::Rename) to[call.after] = call.file;
  };
  for (const DiskCall& call : calls) {
    switch (call.kind) {
      case DiskCall::Write: files[call.file].push_back({call.data}); break;
      case DiskCall::Sync:
        for (Written& each : files[call.file])
          each.safe = true;
        break;
      case DiskCall::SyncFolder:
        for (const DiskCall& each : waiting)
          apply(names, each);
        waiting.clear();
        break;
      default: waiting.push_back(call);
    }
  }
  std::set<std::string> found;
  for (size_t chosen = 0; chosen < size_t{1} << waiting.size(); ++chosen) {
    std::map<std::string, int> there = names;
    for (size_t i = 0; i < waiting.size(); ++i) {
      if (chosen >> i & 1) apply(there, waiting[i]);
    }
    const auto file = there.find(path);
    if (file == there.end()) {
      found.insert(kNoFile);
      continue;
    }
    std::set<std::string> contents = {""};
    for (const auto& [data, safe] : files[file->second]) {
      std::set<std::string> parts = {data};
      if (!safe) parts.insert({"", data.substr(0, data.size() / 2), std::string(data.size(), '\0')});
      std::set<std::string> longer;
      for (const std::string& before : contents)
        for (const std::string& part : parts)
          longer.insert(before + part);
      contents = std::move(longer);
    }
    found.merge(contents);
  }
  return found;
}

}  // namespace brigade::test
