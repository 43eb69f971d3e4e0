// Causes and verdicts as JSON, and back.
#include <brigade/dist/diagnosis/wire.h>

namespace brigade::dist {

std::string to_text(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

nlohmann::json from_text(const std::string& text) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) throw DistError("a message from a rank is not JSON: '" + text.substr(0, 40) + "'");
  return json;
}

std::vector<nlohmann::json> from_texts(std::span<const std::string> texts) {
  std::vector<nlohmann::json> all;
  for (const std::string& text : texts)
    all.push_back(from_text(text));
  return all;
}

void to_json(nlohmann::json& json, const Cause& cause) {
  json = {{"kind", cause.kind},     {"op", cause.op},     {"file", cause.file}, {"line", cause.line},
          {"module", cause.module}, {"text", cause.text}, {"note", cause.note}};
}

void from_json(const nlohmann::json& json, Cause& cause) {
  json.at("kind").get_to(cause.kind);
  json.at("op").get_to(cause.op);
  json.at("file").get_to(cause.file);
  json.at("line").get_to(cause.line);
  json.at("module").get_to(cause.module);
  json.at("text").get_to(cause.text);
  json.at("note").get_to(cause.note);
}

void to_json(nlohmann::json& json, const ParameterVerdict& parameter) {
  json = {{"name", parameter.name},
          {"bytes", parameter.bytes},
          {"ready_ranks", parameter.ready_ranks},
          {"missing_ranks", parameter.missing_ranks}};
}

void from_json(const nlohmann::json& json, ParameterVerdict& parameter) {
  json.at("name").get_to(parameter.name);
  json.at("bytes").get_to(parameter.bytes);
  json.at("ready_ranks").get_to(parameter.ready_ranks);
  json.at("missing_ranks").get_to(parameter.missing_ranks);
}

void to_json(nlohmann::json& json, const Verdict& verdict) {
  json = {{"kind", verdict.kind},         {"message", verdict.message},    {"parameters", verdict.parameters},
          {"ranks", verdict.ranks},       {"cause", verdict.cause},        {"advice", verdict.advice},
          {"severity", verdict.severity}, {"iteration", verdict.iteration}};
}

void from_json(const nlohmann::json& json, Verdict& verdict) {
  json.at("kind").get_to(verdict.kind);
  json.at("message").get_to(verdict.message);
  json.at("parameters").get_to(verdict.parameters);
  json.at("ranks").get_to(verdict.ranks);
  json.at("cause").get_to(verdict.cause);
  json.at("advice").get_to(verdict.advice);
  json.at("severity").get_to(verdict.severity);
  json.at("iteration").get_to(verdict.iteration);
}

void to_json(nlohmann::json& json, const StepOnRank& step) {
  json = {{"name", step.name}, {"where", step.where}, {"options", step.options}, {"gradients", step.gradients}};
  nlohmann::json& edits = json["edits"] = nlohmann::json::array();
  for (const StepOnRank::Edit& edit : step.edits)
    edits.push_back({{"parameter", edit.parameter}, {"op", edit.op}, {"where", edit.where}});
}

void from_json(const nlohmann::json& json, StepOnRank& step) {
  json.at("name").get_to(step.name);
  json.at("where").get_to(step.where);
  json.at("options").get_to(step.options);
  json.at("gradients").get_to(step.gradients);
  for (const nlohmann::json& edit : json.at("edits"))
    step.edits.push_back({edit.at("parameter"), edit.at("op"), edit.at("where")});
}

}  // namespace brigade::dist
