// What ranks tell each other about what they saw: JSON text.
#pragma once

#include <brigade/dist/diagnosis/kinds.h>

#include <nlohmann/json.hpp>

#include <span>
#include <string>
#include <vector>

namespace brigade::dist {

// Bytes that are not UTF-8 are replaced.
std::string to_text(const nlohmann::json& json);
// Throws DistError for a text that to_text() did not make.
nlohmann::json from_text(const std::string& text);
std::vector<nlohmann::json> from_texts(std::span<const std::string> texts);

// As nlohmann::json looks them up. Numbers for the enums: every rank runs the same program.
void to_json(nlohmann::json& json, const Cause& cause);
void from_json(const nlohmann::json& json, Cause& cause);
void to_json(nlohmann::json& json, const ParameterVerdict& parameter);
void from_json(const nlohmann::json& json, ParameterVerdict& parameter);
void to_json(nlohmann::json& json, const Verdict& verdict);
void from_json(const nlohmann::json& json, Verdict& verdict);
void to_json(nlohmann::json& json, const StepOnRank& step);
void from_json(const nlohmann::json& json, StepOnRank& step);

}  // namespace brigade::dist
