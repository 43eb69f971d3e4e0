// A checkpoint as stored in a safetensors file: parts, each with its kind, its tensors and its numbers.
#pragma once

#include <brigade/core/safetensors.h>

#include <array>
#include <charconv>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace brigade::optim::detail {

// The metadata key that holds the version.
inline constexpr const char* kCheckpointKey = "brigade/checkpoint";
// Version 1 has no checksums.
inline constexpr const char* kCheckpointVersion = "2";

// The shortest text that reads back as the same bits.
template <class T>
std::string number_text(T value) {
  std::array<char, 40> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

struct CheckpointPart {
  std::string kind;                                        // "optimizer"
  std::string type;                                        // "AdamW"; "" if the kind is sufficient
  std::vector<std::pair<std::string, Tensor>> tensors;     // memory-mapped
  std::vector<std::pair<std::string, std::string>> texts;  // numbers, not parsed yet
};

class CheckpointFile {
 public:
  // Throws IoError for a file that is not a checkpoint or is damaged; DTypeError and ShapeError like SafetensorsFile.
  explicit CheckpointFile(const std::string& path);

  const std::map<std::string, CheckpointPart>& parts() const noexcept { return parts_; }
  const CheckpointPart& part(const std::string& name) const { return parts_.at(name); }
  // One number of a part: int64_t, uint64_t or double. Throws IoError when it is missing or cannot be parsed.
  template <class T>
  T number(const std::string& part, const std::string& name) const;
  // All numbers of a part. Throws IoError.
  std::vector<std::pair<std::string, double>> numbers(const std::string& part) const;

 private:
  CheckpointPart& part_of(const std::string& key, size_t slash, const char* what);

  std::string path_;
  SafetensorsFile file_;
  std::map<std::string, CheckpointPart> parts_;
};

}  // namespace brigade::optim::detail
