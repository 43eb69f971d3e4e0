// Sorts the tensors and metadata of a file into parts, and parses its numbers.
#include <brigade/optim/detail/checkpoint_file.h>

#include <brigade/core/detail/file_formats.h>

namespace brigade::optim::detail {

using brigade::detail::in_quotes;

namespace {

template <class T>
T parsed(const std::string& path, const std::string& key, const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw IoError("{}: number {} is {}; expected a {}", path, in_quotes(key), in_quotes(text),
                  std::is_integral_v<T> ? "whole number of 64 bits" : "number");
  }
  return value;
}

}  // namespace

CheckpointFile::CheckpointFile(const std::string& path) : path_(path), file_(path) {
  const SafetensorsMetadata& metadata = file_.metadata();
  const auto version = metadata.find(kCheckpointKey);
  if (version == metadata.end()) {
    throw IoError("{}: the metadata has no \"{}\"; expected a file that Checkpoint::save wrote", path, kCheckpointKey);
  }
  if (version->second != "1" && version->second != kCheckpointVersion) {
    throw IoError("{}: \"{}\" is {}; expected \"1\" or \"{}\", the versions that this program knows", path,
                  kCheckpointKey, in_quotes(version->second), kCheckpointVersion);
  }
  if (version->second == kCheckpointVersion && !file_.has_checksums())
    throw IoError("{}: the metadata holds no checksums; expected them in a file that Checkpoint::save wrote", path);
  for (const auto& [key, value] : metadata) {
    if (key.find('/') != std::string::npos) continue;
    const size_t space = value.find(' ');
    parts_[key] = {value.substr(0, space), space == std::string::npos ? "" : value.substr(space + 1), {}, {}};
  }
  for (const auto& [key, value] : metadata) {
    const size_t slash = key.find('/');
    if (key != kCheckpointKey && slash != std::string::npos)
      part_of(key, slash, "number").texts.emplace_back(key.substr(slash + 1), value);
  }
  file_.verify();
  for (const SafetensorsEntry& entry : file_.entries()) {
    const size_t slash = entry.name.find('/');
    CheckpointPart& part = part_of(entry.name, slash, "tensor");
    part.tensors.emplace_back(entry.name.substr(slash + 1), file_.mapped(entry.name));
  }
}

CheckpointPart& CheckpointFile::part_of(const std::string& key, size_t slash, const char* what) {
  const auto found = slash == std::string::npos ? parts_.end() : parts_.find(key.substr(0, slash));
  if (found != parts_.end()) return found->second;
  throw IoError("{}: {} {} belongs to no part; expected \"<part>/<name>\" of a part that the metadata names", path_,
                what, in_quotes(key));
}

template <class T>
T CheckpointFile::number(const std::string& part, const std::string& name) const {
  for (const auto& [own, text] : parts_.at(part).texts) {
    if (own == name) return parsed<T>(path_, part + "/" + name, text);
  }
  throw IoError("{}: number {} is missing; expected it in the metadata", path_, in_quotes(part + "/" + name));
}

template int64_t CheckpointFile::number(const std::string&, const std::string&) const;
template uint64_t CheckpointFile::number(const std::string&, const std::string&) const;
template double CheckpointFile::number(const std::string&, const std::string&) const;

std::vector<std::pair<std::string, double>> CheckpointFile::numbers(const std::string& part) const {
  std::vector<std::pair<std::string, double>> numbers;
  for (const auto& [name, text] : parts_.at(part).texts)
    numbers.emplace_back(name, parsed<double>(path_, part + "/" + name, text));
  return numbers;
}

}  // namespace brigade::optim::detail
