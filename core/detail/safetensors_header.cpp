// The JSON is read event by event, without a tree; tensors must fill the data without gaps.
#include <brigade/core/detail/safetensors_header.h>

#include <brigade/core/detail/file_formats.h>
#include <brigade/core/shape.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_set>

namespace brigade::detail {
namespace {

using nlohmann::json;

struct FileDType {
  std::string_view name;
  uint64_t bits;
  std::optional<DType> own;
};

// All dtypes of the format.
constexpr FileDType kFileDTypes[] = {
    {"F64", 64, kFloat64}, {"F32", 32, kFloat32}, {"F16", 16, kFloat16},  {"BF16", 16, kBFloat16}, {"I64", 64, kInt64},
    {"I32", 32, kInt32},   {"U8", 8, kUInt8},     {"BOOL", 8, kBool},     {"I16", 16, {}},         {"I8", 8, {}},
    {"U16", 16, {}},       {"U32", 32, {}},       {"U64", 64, {}},        {"C64", 64, {}},         {"F8_E5M2", 8, {}},
    {"F8_E4M3", 8, {}},    {"F8_E8M0", 8, {}},    {"F8_E4M3FNUZ", 8, {}}, {"F8_E5M2FNUZ", 8, {}},  {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},    {"F4", 4, {}},
};

const FileDType* find_dtype(std::string_view name) noexcept {
  const auto* found = std::find_if(std::begin(kFileDTypes), std::end(kFileDTypes),
                                   [&](const FileDType& known) { return known.name == name; });
  return found == std::end(kFileDTypes) ? nullptr : found;
}

// "[2, 3]", shortened
std::string text_of(const std::vector<int64_t>& sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i)
    text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + "]";
}

// Handles the events of the JSON parser and accepts only what the format allows. No tree is built,
// and nothing is nested deeper than a list in an object in an object, whatever the file contains.
class HeaderReader {
 public:
  // The names that nlohmann::json's parser expects for number and text types.
  using number_integer_t = json::number_integer_t;
  using number_unsigned_t = json::number_unsigned_t;
  using number_float_t = json::number_float_t;
  using string_t = json::string_t;
  using binary_t = json::binary_t;

  HeaderReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}
  SafetensorsHeader take() { return std::move(header_); }

  bool null() { return value("null"); }
  bool boolean(bool given) { return value(given ? "true" : "false"); }
  bool number_integer(number_integer_t number) { return value(std::to_string(number)); }
  bool number_float(number_float_t, const string_t& digits) { return value(digits); }
  bool binary(binary_t&) { return value("binary data"); }
  bool number_unsigned(number_unsigned_t number) {
    if (place_ != Place::List) return value(std::to_string(number));
    if (field_ == Field::Offsets) {
      if (offsets_.size() == 2) throw IoError("{} has more than 2 numbers; expected [begin, end]", field());
      offsets_.push_back(number);
      return true;
    }
    if (entry_.sizes.size() == static_cast<size_t>(kMaxDims))
      throw IoError("{} has more than {} sizes; expected at most {}", field(), kMaxDims, kMaxDims);
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return value(std::to_string(number));
    entry_.sizes.push_back(static_cast<int64_t>(number));
    return true;
  }
  bool string(string_t& given) {
    if (place_ == Place::Metadata) {
      if (!header_.metadata.emplace(key_, std::move(given)).second)
        throw IoError("{}: __metadata__: {} appears twice; expected each name once", path_, in_quotes(key_));
      return true;
    }
    if (place_ != Place::Tensor || field_ != Field::DType) return value(in_quotes(given));
    if (!find_dtype(given))
      throw IoError("{} is {}; expected a dtype of the format, such as F32, BF16 or I64", field(), in_quotes(given));
    entry_.dtype = std::move(given);
    return true;
  }

  bool start_object(size_t) {
    switch (place_) {
      case Place::Start: place_ = Place::Top; return true;
      case Place::Top: place_ = key_ == "__metadata__" ? Place::Metadata : Place::Tensor; return true;
      default: return value("an object");
    }
  }
  bool key(string_t& name) {
    if (place_ == Place::Tensor) {
      begin_field(name);
      return true;
    }
    key_ = std::move(name);
    if (place_ == Place::Top) {
      if (!names_.insert(key_).second) throw IoError("{} appears twice; expected each name once", subject());
      entry_ = {};
      entry_.name = key_;
      offsets_.clear();
      seen_[0] = seen_[1] = seen_[2] = false;
    }
    return true;
  }
  bool end_object() {
    if (place_ == Place::Tensor) end_tensor();
    place_ = Place::Top;  // of the outermost object too: nothing follows it
    return true;
  }
  bool start_array(size_t) {
    if (place_ != Place::Tensor || field_ == Field::DType) return value("a list");
    place_ = Place::List;
    return true;
  }
  bool end_array() {
    if (field_ == Field::Offsets && offsets_.size() != 2)
      throw IoError("{} has {} numbers; expected [begin, end]", field(), offsets_.size());
    place_ = Place::Tensor;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const json::exception& error) {
    // A number that no double can hold is reported where it ends, like a syntax error.
    const size_t begin = std::min(position > 20 ? position - 20 : 0, text_.size());
    throw IoError("{}: the header is not valid JSON at byte {}, after {}{}", path_, position,
                  in_quotes(text_.substr(begin, std::min<size_t>(position, text_.size()) - begin)),
                  error.id == 406 ? "; a number is out of range" : "");
  }

 private:
  enum class Place { Start, Top, Metadata, Tensor, List };
  enum class Field { DType, Shape, Offsets };
  static constexpr const char* kFields[] = {"dtype", "shape", "data_offsets"};

  // The subject of a message.
  std::string subject() const { return path_ + ": tensor " + in_quotes(key_); }
  std::string field() const { return subject() + ": " + kFields[static_cast<int>(field_)]; }
  // Throws for a value that is not allowed at this position.
  bool value(const std::string& given) const {
    switch (place_) {
      case Place::Start: throw IoError("{}: the header is {}; expected an object of tensors by name", path_, given);
      case Place::Top:
        if (key_ == "__metadata__")
          throw IoError("{}: __metadata__ is {}; expected an object of texts by name", path_, given);
        throw IoError("{} is {}; expected an object with dtype, shape and data_offsets", subject(), given);
      case Place::Metadata: throw IoError("{}: __metadata__: {} is {}; expected a text", path_, in_quotes(key_), given);
      case Place::List:
        throw IoError("{} holds {}; expected whole numbers from 0 to 9223372036854775807", field(), given);
      case Place::Tensor: break;
    }
    throw IoError("{} is {}; expected {}", field(), given,
                  field_ == Field::DType   ? "a text such as \"F32\""
                  : field_ == Field::Shape ? "a list of sizes"
                                           : "[begin, end]");
  }
  void begin_field(const std::string& name) {
    for (int i = 0; i < 3; ++i) {
      if (name != kFields[i]) continue;
      field_ = static_cast<Field>(i);
      if (seen_[i]) throw IoError("{} appears twice; expected each field once", field());
      seen_[i] = true;
      return;
    }
    throw IoError("{}: unknown field {}; expected dtype, shape and data_offsets", subject(), in_quotes(name));
  }
  void end_tensor() {
    for (int i = 0; i < 3; ++i) {
      if (!seen_[i]) throw IoError("{}: {} is missing; expected dtype, shape and data_offsets", subject(), kFields[i]);
    }
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    header_.entries.push_back(std::move(entry_));
  }

  std::string_view text_;
  const std::string& path_;
  SafetensorsHeader header_;
  Place place_ = Place::Start;
  Field field_ = Field::DType;
  std::string key_;  // of the tensor, or of the text
  SafetensorsEntry entry_;
  std::vector<uint64_t> offsets_;
  bool seen_[3] = {};
  std::unordered_set<std::string> names_;
};

// The number of bytes that shape and dtype require. The product of the sizes other than 0 must fit
// too: strides are such products.
uint64_t bytes_of(const SafetensorsEntry& entry, const std::string& subject) {
  uint64_t bits = find_dtype(entry.dtype)->bits;
  bool empty = false;
  for (const int64_t size : entry.sizes) {
    empty = empty || size == 0;
    if (size != 0 && (__builtin_mul_overflow(bits, static_cast<uint64_t>(size), &bits) || bits >> 63)) {
      throw IoError("{}: shape {} of {} overflows; expected less than 2^63 bits", subject, text_of(entry.sizes),
                    entry.dtype);
    }
  }
  if (empty) return 0;
  if (bits % 8 != 0) {
    throw IoError("{}: shape {} of {} makes {} bits; expected whole bytes", subject, text_of(entry.sizes), entry.dtype,
                  bits);
  }
  return bits / 8;
}

void check_layout(const std::vector<SafetensorsEntry>& entries, uint64_t data_bytes, const std::string& path) {
  uint64_t position = 0;
  const SafetensorsEntry* before = nullptr;
  for (const SafetensorsEntry& entry : entries) {
    const std::string subject = path + ": tensor " + in_quotes(entry.name);
    const std::string offsets =
        subject + ": data_offsets [" + std::to_string(entry.begin) + ", " + std::to_string(entry.end) + "]";
    if (entry.begin > entry.end) throw IoError("{} end before they begin; expected begin <= end", offsets);
    if (entry.end > data_bytes)
      throw IoError("{} reach outside the data; expected at most {}, the bytes that follow the header", offsets,
                    data_bytes);
    const uint64_t expected = bytes_of(entry, subject);
    if (entry.end - entry.begin != expected)
      throw IoError("{} hold {} bytes; expected {} for {} of shape {}", offsets, entry.end - entry.begin, expected,
                    entry.dtype, text_of(entry.sizes));
    if (entry.begin != position) {
      throw IoError("{}{}{}{}; expected begin {}", offsets, entry.begin < position ? " overlap" : " leave a hole after",
                    before ? " tensor " : " the header", before ? in_quotes(before->name) : "", position);
    }
    position = entry.end;
    before = &entry;
  }
  if (position != data_bytes) {
    throw IoError("{}: the tensors end at byte {} of the data, which has {}; expected them to fill it", path, position,
                  data_bytes);
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, uint64_t data_bytes, const std::string& path) {
  if (text.empty() || text.front() != '{') {
    throw IoError("{}: the header begins with {}; expected \"{\"", path, in_quotes(text.substr(0, 1)));
  }
  // The parser would take a zero for the end of the text and ignore what follows.
  if (const size_t position = text.find('\0'); position != std::string_view::npos) {
    throw IoError("{}: the header holds a zero at byte {}; expected JSON", path, position + 1);
  }
  HeaderReader reader(text, path);
  json::sax_parse(text.begin(), text.end(), &reader);
  SafetensorsHeader header = reader.take();
  std::sort(header.entries.begin(), header.entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_layout(header.entries, data_bytes, path);
  return header;
}

namespace {

std::string json_text(const std::string& text, const char* what) {
  try {
    return json(text).dump();
  } catch (const json::type_error&) {
    throw ValueError("save_safetensors: {} {} is not UTF-8; expected UTF-8", what, in_quotes(text));
  }
}

}  // namespace

std::string safetensors_header_text(const std::vector<SafetensorsEntry>& entries, const SafetensorsMetadata& metadata) {
  std::string text = "{";
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata)
      text += json_text(key, "metadata key") + ":" + json_text(value, "metadata value") + ",";
    text.back() = '}';
    text += ",";
  }
  for (const SafetensorsEntry& entry : entries) {
    text += json_text(entry.name, "tensor name") + ":{\"dtype\":\"" + entry.dtype + "\",\"shape\":[";
    for (size_t i = 0; i < entry.sizes.size(); ++i)
      text += (i ? "," : "") + std::to_string(entry.sizes[i]);
    text += "],\"data_offsets\":[" + std::to_string(entry.begin) + "," + std::to_string(entry.end) + "]},";
  }
  if (text.size() > 1) text.pop_back();
  return text + "}";
}

const char* safetensors_dtype(DType dtype) noexcept {
  for (const FileDType& known : kFileDTypes) {
    if (known.own == dtype) return known.name.data();
  }
  return "";
}

std::optional<DType> dtype_from_safetensors(std::string_view name) noexcept {
  const FileDType* found = find_dtype(name);
  return found ? found->own : std::nullopt;
}

}  // namespace brigade::detail
