// JSON serialization of what ranks exchange about collectives, and of verdicts.
#pragma once

#include <brigade/dist/errors/collective_info.h>
#include <brigade/dist/errors/json.h>
#include <brigade/dist/errors/rank_activity.h>
#include <brigade/dist/errors/verdict.h>

// Optional values: null if missing.
template <class T>
struct nlohmann::adl_serializer<std::optional<T>> {
  static void to_json(json& json, const std::optional<T>& value) { json = value ? nlohmann::json(*value) : nullptr; }
  static void from_json(const json& json, std::optional<T>& value) {
    value = json.is_null() ? std::nullopt : std::optional<T>(json.get<T>());
  }
};

namespace brigade::dist {

inline void to_json(nlohmann::json& json, const Name& name) { json = name.text(); }
inline void from_json(const nlohmann::json& json, Name& name) { name = Name(json.get<std::string>()); }

// Objects are keyed by the names of their members. Enums are numbers: every rank runs the same program.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Cause, kind, op, place, module, text, note)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ParameterVerdict, name, bytes, ready_ranks, missing_ranks)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Verdict, kind, what, message, parameters, ranks, cause, advice, severity, iteration)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Owner, name, number)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Topic, phase, purpose, owner, index, hook)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CollectiveInfo::Part, count, dtype)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CollectiveInfo, sequence, kind, op, dtype, count, root, topic, text, text_hash, part,
                                   parts, sizes, parts_digest, mixed_op, mixed_dtype, iteration, where)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Departure, how, words)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Line, file, number)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankActivity::OfForward, wrapper, forward)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankActivity::Missed, how, wrapper, line, opened)

inline void to_json(nlohmann::json& json, const RankActivity& activity) {
  json = {
      {"doing", activity.doing},         {"owner", activity.owner},    {"local_backwards", activity.local_backwards},
      {"after", activity.after},         {"where", activity.where},    {"text", activity.text},
      {"forwards", activity.forwards()}, {"missed", activity.missed()}};
}
inline void from_json(const nlohmann::json& json, RankActivity& activity) {
  activity = {};
  json.at("doing").get_to(activity.doing);
  json.at("owner").get_to(activity.owner);
  json.at("local_backwards").get_to(activity.local_backwards);
  json.at("after").get_to(activity.after);
  json.at("where").get_to(activity.where);
  json.at("text").get_to(activity.text);
  for (const auto& forward : json.at("forwards"))
    activity.add(forward.get<RankActivity::OfForward>());
  for (const auto& missed : json.at("missed"))
    activity.add(missed.get<RankActivity::Missed>());
}

}  // namespace brigade::dist
