// The safetensors format (https://github.com/huggingface/safetensors, "Format"): tensors by name in
// one file, which the Python package of that name reads and writes as well.
//
// A file is: the length of the header (8 bytes, little endian); the header, JSON that gives for
// each tensor its dtype, its shape and where its bytes lie, and under "__metadata__" texts by name;
// then the bytes of all tensors, row-major, little endian, without holes or overlaps.
//
// Files come from anywhere, so nothing in them is trusted: each reader throws IoError that names
// the file, the tensor, the field, its content and what was expected, and allocates no memory for
// data that the file does not contain.
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace brigade {

namespace detail {
class InputFile;
}

// A tensor as the header describes it.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;           // as in the file: "F32"
  std::vector<int64_t> sizes;  // may have more dimensions than a Tensor
  uint64_t begin = 0;          // of its bytes, counted from the end of the header
  uint64_t end = 0;
};

using SafetensorsMetadata = std::map<std::string, std::string>;

// An open file whose header was read and checked. Tensors are read when asked for.
class SafetensorsFile {
 public:
  // Throws IoError if there is no such file, or if the header does not follow the format or is not
  // the one that was saved with checksums. A file may describe tensors that Brigade has no dtype
  // for (F8_E4M3, I16, ...); only reading those throws.
  explicit SafetensorsFile(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;

  const std::string& path() const noexcept;
  const SafetensorsMetadata& metadata() const noexcept { return metadata_; }
  // In the order of their bytes.
  const std::vector<SafetensorsEntry>& entries() const noexcept { return entries_; }
  bool contains(const std::string& name) const { return index_.contains(name); }

  // Whether the file was saved with checksums.
  bool has_checksums() const noexcept { return !checksums_.empty(); }
  // Reads everything; does nothing without checksums. Throws IoError that names the first tensor
  // whose bytes are not those that were saved.
  void verify() const;

  // A copy in its own memory, verified if there are checksums. Throws ValueError if there is no
  // such tensor, DTypeError for a dtype that Brigade does not have, IoError if the bytes cannot be
  // read, are not those that were saved or, for a bool tensor, are not 0 or 1.
  Tensor tensor(const std::string& name) const;
  // The same without a copy, and not verified: its memory is the file's, mapped on first use, and
  // read when first touched. Writes to the tensor stay in this process. The file must not be
  // truncated while the tensor is in use. A tensor whose bytes are not aligned for its dtype is
  // copied nevertheless.
  Tensor mapped(const std::string& name) const;

 private:
  size_t find(const std::string& name) const;
  char* mapping() const;
  void verify(size_t entry, const void* data) const;

  std::unique_ptr<detail::InputFile> file_;
  uint64_t data_begin_ = 0;
  SafetensorsMetadata metadata_;
  std::vector<SafetensorsEntry> entries_;
  std::vector<uint64_t> checksums_;  // of the header and the entries, or none
  std::unordered_map<std::string, size_t> index_;
  mutable std::shared_ptr<char> mapping_;
};

// All tensors of a file.
struct Safetensors {
  std::vector<std::pair<std::string, Tensor>> tensors;  // in the order of their bytes
  SafetensorsMetadata metadata;
};
// Throws what SafetensorsFile and its tensor() throw.
Safetensors load_safetensors(const std::string& path);

struct SaveSafetensorsOptions {
  // Stores the 64-bit XXH3 of the header and of each tensor's bytes in the metadata "brigade/xxh3",
  // in hexadecimal, in the order of the file, so that a reader detects what a disk or a network has
  // changed. metadata() leaves it out. Brigade refuses a file that a program has changed while
  // keeping its metadata.
  bool checksums = false;
};

// Writes a file as the Python package does: tensors of wide dtypes first, then by name; the header
// padded with spaces to a multiple of 8, so that every tensor is aligned. Any strides, any device.
// The file appears whole or not at all (core/atomic_file.h). Throws ValueError for a name that
// appears twice, is "__metadata__" or is not UTF-8, for metadata that is not UTF-8 or is called
// "brigade/xxh3", and for an undefined tensor; IoError when writing fails.
void save_safetensors(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& tensors,
                      const SafetensorsMetadata& metadata = {}, const SaveSafetensorsOptions& options = {});

}  // namespace brigade
