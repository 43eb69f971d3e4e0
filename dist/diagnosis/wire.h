// What ranks tell each other about what they saw: JSON text.
#pragma once

#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/diagnosis/report.h>

#include <nlohmann/json.hpp>

#include <string>

namespace brigade::dist {

// Bytes that are not UTF-8 are replaced.
std::string to_text(const nlohmann::json& json);
// Throws DistError for a text that to_text() did not make.
nlohmann::json from_text(const std::string& text);

// Objects by the names of their members. Numbers for the enums: every rank runs the same program.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Cause, kind, op, file, line, module, text, note)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ParameterVerdict, name, bytes, ready_ranks, missing_ranks)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Verdict, kind, message, parameters, ranks, cause, advice, severity, iteration)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NonFiniteOnRank, rank, cause, parameters)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GradientSize, log2, hook)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepOnRank::Edit, parameter, op, where)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepOnRank, name, where, options, gradients, edits)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankReport, rank, round, backward, failure, ready, recorded, recorded_at, causes)

// What to_text() made of a T on another rank. Throws DistError for anything else.
template <class T>
T decoded(const std::string& text) {
  try {
    return from_text(text).get<T>();
  } catch (const nlohmann::json::exception& error) {
    throw DistError("a message from a rank cannot be read: {}", error.what());
  }
}

}  // namespace brigade::dist
