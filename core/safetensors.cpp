// Tensors are copied or mapped from a file, and saved in the order of the Python package.
#include <brigade/core/safetensors.h>

#include <brigade/core/atomic_file.h>
#include <brigade/core/detail/file_formats.h>
#include <brigade/core/detail/files.h>
#include <brigade/core/detail/safetensors_header.h>
#include <brigade/core/factory.h>

#include <algorithm>
#include <bit>

namespace brigade {

static_assert(std::endian::native == std::endian::little, "the bytes in a file are little endian");

namespace {

constexpr uint64_t kLengthBytes = 8;

// The shape and dtype of an entry as a Tensor has them; throws if Brigade cannot have such a tensor.
std::pair<Shape, DType> own_form(const SafetensorsEntry& entry, const std::string& subject) {
  const std::optional<DType> dtype = detail::dtype_from_safetensors(entry.dtype);
  if (!dtype) {
    throw DTypeError(
        "{} has dtype {}; expected one of F64, F32, F16, BF16, I64, I32, U8, BOOL: convert it where it was written",
        subject, entry.dtype);
  }
  return {Shape(entry.sizes), *dtype};
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(std::make_unique<detail::InputFile>(path)) {
  const uint64_t size = file_->size();
  if (size < kLengthBytes) {
    throw IoError("{}: the file has {} bytes; expected at least 8, the header length", path, size);
  }
  uint64_t length = 0;
  file_->read(0, &length, kLengthBytes);
  if (length > size - kLengthBytes) {
    throw IoError(
        "{}: header length {} is more than the file holds; expected at most {} (is it a safetensors file, and whole?)",
        path, length, size - kLengthBytes);
  }
  if (length > detail::kMaxSafetensorsHeader) {
    throw IoError("{}: header length {} is too large; expected at most {}", path, length,
                  detail::kMaxSafetensorsHeader);
  }
  std::string text(static_cast<size_t>(length), '\0');
  file_->read(kLengthBytes, text.data(), text.size());
  data_begin_ = kLengthBytes + length;
  detail::SafetensorsHeader header = detail::parse_safetensors_header(text, size - data_begin_, path);
  metadata_ = std::move(header.metadata);
  entries_ = std::move(header.entries);
  if (const auto found = metadata_.find(detail::kChecksumsKey); found != metadata_.end()) {
    checksums_ = detail::read_checksums(found->second, std::move(text), entries_.size(), path);
    metadata_.erase(found);
  }
  for (size_t i = 0; i < entries_.size(); ++i)
    index_.emplace(entries_[i].name, i);
}

SafetensorsFile::~SafetensorsFile() = default;
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;

const std::string& SafetensorsFile::path() const noexcept { return file_->path(); }

size_t SafetensorsFile::find(const std::string& name) const {
  const auto found = index_.find(name);
  if (found != index_.end()) return found->second;
  std::string known;
  for (size_t i = 0; i < entries_.size() && i < 8; ++i)
    known += (i ? ", " : "") + detail::in_quotes(entries_[i].name);
  throw ValueError("{} holds no tensor {}; it holds {}{}{}{}", path(), detail::in_quotes(name), entries_.size(),
                   known.empty() ? "" : ": ", known, entries_.size() > 8 ? ", ..." : "");
}

void SafetensorsFile::verify(size_t entry, const void* data) const {
  if (!has_checksums()) return;
  const auto& [name, dtype, sizes, begin, end] = entries_[entry];
  const uint64_t found = detail::checksum(data, static_cast<size_t>(end - begin));
  if (found == checksums_[entry + 1]) return;
  throw IoError("{}: tensor {}: its {} bytes have the checksum {}, expected {}: the file is damaged; take another copy",
                path(), detail::in_quotes(name), end - begin, detail::in_hexadecimal(found),
                detail::in_hexadecimal(checksums_[entry + 1]));
}

void SafetensorsFile::verify() const {
  for (size_t i = 0; has_checksums() && i < entries_.size(); ++i)
    verify(i, entries_[i].begin == entries_[i].end ? "" : mapping() + data_begin_ + entries_[i].begin);
}

char* SafetensorsFile::mapping() const {
  if (!mapping_) mapping_ = file_->map();
  return mapping_.get();
}

Tensor SafetensorsFile::tensor(const std::string& name) const {
  const size_t place = find(name);
  const SafetensorsEntry& found = entries_[place];
  const std::string subject = path() + ": tensor " + detail::in_quotes(name);
  const auto [sizes, dtype] = own_form(found, subject);
  Tensor result = empty(sizes, dtype);
  file_->read(data_begin_ + found.begin, result.raw_data(), result.nbytes());
  verify(place, result.raw_data());
  detail::check_bool_bytes(dtype, result.raw_data(), result.nbytes(), subject);
  return result;
}

Tensor SafetensorsFile::mapped(const std::string& name) const {
  const SafetensorsEntry& found = entries_[find(name)];
  const std::string subject = path() + ": tensor " + detail::in_quotes(name);
  const auto [sizes, dtype] = own_form(found, subject);
  // A mapping begins on a page, so the offset in the file determines the alignment.
  const uint64_t offset = data_begin_ + found.begin;
  if (found.begin == found.end || offset % itemsize(dtype) != 0) return tensor(name);
  char* data = mapping() + offset;
  detail::check_bool_bytes(dtype, data, static_cast<size_t>(found.end - found.begin), subject);
  return from_blob(data, sizes, dtype, [keep = mapping_] {});
}

Safetensors load_safetensors(const std::string& path) {
  const SafetensorsFile file(path);
  Safetensors result;
  result.metadata = file.metadata();
  for (const SafetensorsEntry& entry : file.entries())
    result.tensors.emplace_back(entry.name, file.tensor(entry.name));
  return result;
}

namespace {

// The Python package's order: I64, F64, F32, I32, BF16, F16, U8, BOOL.
int place_in_file(DType dtype) noexcept {
  constexpr int kPlaces[] = {1, 2, 5, 4, 0, 3, 6, 7};  // by the order of DType
  return kPlaces[static_cast<int>(dtype)];
}

using NamedTensor = std::pair<std::string, Tensor>;

std::string checksums_of(const std::vector<const NamedTensor*>& tensors) {
  std::vector<uint64_t> checksums;
  for (const NamedTensor* named : tensors) {
    const Tensor data = detail::row_major_on_host(named->second);
    checksums.push_back(detail::checksum(data.raw_data(), data.nbytes()));
  }
  return detail::checksums_text(checksums);
}

}  // namespace

void save_safetensors(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& tensors,
                      const SafetensorsMetadata& metadata, const SaveSafetensorsOptions& options) {
  std::vector<const NamedTensor*> order;
  order.reserve(tensors.size());
  for (const NamedTensor& named : tensors) {
    if (!named.second.defined())
      throw ValueError("save_safetensors: tensor {} is undefined; leave it out", detail::in_quotes(named.first));
    if (named.first == "__metadata__")
      throw ValueError("save_safetensors: a tensor cannot be called \"__metadata__\"; the format keeps that name");
    order.push_back(&named);
  }
  std::sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    const int place_a = place_in_file(a->second.dtype());
    const int place_b = place_in_file(b->second.dtype());
    return place_a != place_b ? place_a < place_b : a->first < b->first;
  });
  std::unordered_map<std::string, size_t> names;
  std::vector<SafetensorsEntry> entries;
  uint64_t position = 0;
  for (const NamedTensor* named : order) {
    const auto& [name, tensor] = *named;
    if (!names.emplace(name, entries.size()).second)
      throw ValueError("save_safetensors: two tensors are called {}; expected each name once", detail::in_quotes(name));
    const uint64_t end = position + tensor.nbytes();
    entries.push_back({name, detail::safetensors_dtype(tensor.dtype()),
                       std::vector<int64_t>(tensor.sizes().begin(), tensor.sizes().end()), position, end});
    position = end;
  }
  if (metadata.contains(detail::kChecksumsKey))
    throw ValueError("save_safetensors: metadata cannot be called \"{}\"; that name is kept for checksums",
                     detail::kChecksumsKey);
  SafetensorsMetadata written = metadata;
  if (options.checksums) written[detail::kChecksumsKey] = checksums_of(order);
  std::string text = detail::safetensors_header_text(entries, written);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > detail::kMaxSafetensorsHeader) {
    throw ValueError(
        "save_safetensors: the header would have {} bytes; expected at most {}: fewer tensors, "
        "shorter names or less metadata",
        text.size(), detail::kMaxSafetensorsHeader);
  }
  if (options.checksums) detail::put_header_checksum(text);
  const uint64_t length = text.size();
  AtomicFile file(path);
  file.write(&length, kLengthBytes);
  file.write(text.data(), text.size());
  for (const NamedTensor* named : order) {
    const Tensor data = detail::row_major_on_host(named->second);
    file.write(data.raw_data(), data.nbytes());
  }
  file.commit();
}

}  // namespace brigade
