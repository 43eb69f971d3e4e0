// JSON text: of the messages that ranks exchange, and of files that are written piece by piece.
#pragma once

#include <brigade/core/error.h>
#include <brigade/core/place.h>

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace brigade {

// {"file": "train.cpp", "line": 12}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Place, file, line)

}  // namespace brigade

namespace brigade::dist {

// The text in quotation marks, with control characters as \u00XX; other bytes stay as they are.
std::string json_string(std::string_view text);

// Bytes that are not UTF-8 are replaced. from_text() restores non-finite numbers.
std::string to_text(const nlohmann::json& json);
// Throws DistError for a text that to_text() did not make.
nlohmann::json from_text(const std::string& text);

// Decodes the text that to_text() made of a T on another rank. Throws DistError for anything else.
template <class T>
T decoded(const std::string& text) {
  try {
    return from_text(text).get<T>();
  } catch (const nlohmann::json::exception& error) {
    throw DistError("a message from a rank cannot be read: {}", error.what());
  }
}
// Of each rank.
template <class T>
std::vector<T> decoded_of_all(const std::vector<std::string>& texts) {
  std::vector<T> result;
  for (const std::string& text : texts)
    result.push_back(decoded<T>(text));
  return result;
}

}  // namespace brigade::dist
