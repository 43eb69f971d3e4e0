// Tensors as bytes, base64 in JSON.
#include "differential/run.h"

#include <brigade/core/factory.h>
#include <brigade/kernels/elementwise.h>

#include <array>
#include <cstring>

namespace brigade::differential {
namespace {

constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string to_base64(const std::string& bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k)
      text += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::string from_base64(const std::string& text) {
  std::array<int, 256> value;
  value.fill(-1);
  for (int i = 0; i < 64; ++i)
    value[static_cast<unsigned char>(kDigits[i])] = i;
  std::string bytes;
  uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    const int digit = value[static_cast<unsigned char>(c)];
    if (digit < 0) throw ValueError("'" + text + "' is not base64");
    group = group << 6 | static_cast<uint32_t>(digit);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes += static_cast<char>(group >> bits & 255);
    }
  }
  return bytes;
}

}  // namespace

Snapshot Snapshot::of(const Tensor& tensor) {
  const Tensor dense = kernels::contiguous(tensor);
  Snapshot snapshot{tensor.dtype(), tensor.sizes(), std::string(dense.nbytes(), '\0'), tensor.requires_grad()};
  if (dense.numel() > 0) std::memcpy(snapshot.bytes.data(), dense.raw_data(), dense.nbytes());
  return snapshot;
}

Snapshot Snapshot::from_json(const nlohmann::json& object) {
  Snapshot snapshot{dtype_from_name(object.at("dtype").get<std::string>()),
                    Shape(object.at("shape").get<std::vector<int64_t>>()),
                    from_base64(object.at("data").get<std::string>()), object.value("requires_grad", false)};
  if (snapshot.bytes.size() != static_cast<size_t>(snapshot.sizes.numel()) * itemsize(snapshot.dtype))
    throw ValueError("a tensor " + brigade::to_string(snapshot.sizes) + " has " +
                     std::to_string(snapshot.bytes.size()) + " bytes");
  return snapshot;
}

nlohmann::json Snapshot::to_json() const {
  return {{"dtype", name(dtype)},
          {"shape", std::vector<int64_t>(sizes.begin(), sizes.end())},
          {"data", to_base64(bytes)},
          {"requires_grad", requires_grad}};
}

std::vector<double> Snapshot::values() const {
  return visit_dtype(dtype, [&]<class T>() {
    std::vector<double> result;
    for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
      T element;
      std::memcpy(&element, bytes.data() + at, sizeof(T));
      result.push_back(static_cast<double>(element));
    }
    return result;
  });
}

std::string Snapshot::to_text() const {
  std::string text = std::string(name(dtype)) + " " + brigade::to_string(sizes) + " [";
  const std::vector<double> all = values();
  for (size_t i = 0; i < all.size() && i < 24; ++i) {
    char number[32];
    std::snprintf(number, sizeof number, "%s%.9g", i > 0 ? ", " : "", all[i]);
    text += number;
  }
  return text + (all.size() > 24 ? ", ...]" : "]") + (requires_grad ? " requires grad" : "");
}

}  // namespace brigade::differential
