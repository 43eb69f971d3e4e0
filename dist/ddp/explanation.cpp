// Formats an explanation as a table and as JSON.
#include <brigade/dist/ddp/explanation.h>

#include <brigade/dist/errors/json.h>
#include <brigade/dist/errors/verdict.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <tuple>

namespace brigade::dist {
namespace {

using Row = std::array<std::string, 6>;

std::string use_in_words(const ExplainedParameter& parameter, const Explanation& of) {
  if (parameter.used_by) {
    const size_t users = parameter.used_by->size();
    if (users == 0) return "by no rank";
    return static_cast<int>(users) == of.ranks ? "by all ranks" : "by " + ranks_in_words(*parameter.used_by);
  }
  if (!parameter.used) return parameter.is_reduced ? "not known" : "-";
  const char* const here = *parameter.used ? "here" : "not here";
  if (!parameter.users) return fmt::format("{}, elsewhere not known", here);
  return fmt::format("{}, by {} of {} ranks", here, *parameter.users, of.ranks);
}

std::string reduction_in_words(const ExplainedParameter& parameter, const Explanation& of) {
  if (!parameter.is_reduced) return "-";
  std::string text = "never";
  if (parameter.bucket) {
    text = parameter.ready ? fmt::format("bucket {}, ready as number {}", *parameter.bucket, *parameter.ready + 1)
                           : fmt::format("bucket {}, never ready", *parameter.bucket);
    if (parameter.last_used != 0 && parameter.last_used != of.backward)
      text += fmt::format(", last used in backward {}", parameter.last_used);
  }
  if (parameter.local_backwards > 0) {
    text += fmt::format("; {} {} since not reduced ({})", parameter.local_backwards,
                        parameter.local_backwards == 1 ? "backward" : "backwards", to_string(parameter.local_at));
  }
  return text;
}

std::string write_in_words(const ExplainedParameter& parameter) {
  const std::string at = parameter.written_at ? to_string(parameter.written_at) : "";
  if (parameter.written_by.empty()) return at.empty() ? "not known" : fmt::format("not known, after {}", at);
  return at.empty() ? parameter.written_by : fmt::format("{} at {}", parameter.written_by, at);
}

template <class T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

nlohmann::json json_of(const Place& place) { return place ? nlohmann::json(place) : nlohmann::json(); }

nlohmann::json json_of(const ExplainedParameter& parameter) {
  return {{"name", parameter.name},
          {"bytes", parameter.bytes},
          {"state", parameter.state},
          {"used", or_null(parameter.used)},
          {"users", or_null(parameter.users)},
          {"used_by", or_null(parameter.used_by)},
          {"bucket", or_null(parameter.bucket)},
          {"ready", or_null(parameter.ready)},
          {"last_used", parameter.last_used},
          {"local_backwards", parameter.local_backwards},
          {"local_at", json_of(parameter.local_at)},
          {"optimizers", parameter.optimizers},
          {"written_by", parameter.written_by.empty() ? nlohmann::json() : nlohmann::json(parameter.written_by)},
          {"written_at", json_of(parameter.written_at)}};
}

}  // namespace

std::string Explanation::table() const {
  std::string text = fmt::format("{} on rank {} of {}: ", title, rank, ranks);
  text += backward == 0 ? "no backward was reduced yet"
                        : fmt::format("after backward {} ({}){}", backward, to_string(backward_at),
                                      failed ? ", which was an error on all ranks" : "");
  text += broken ? "; the group has failed since\n" : "\n";
  std::vector<Row> rows = {{"parameter", "state", "used", "reduced", "optimizer", "last written"}};
  for (const ExplainedParameter& each : parameters) {
    rows.push_back({each.name, each.state, use_in_words(each, *this), reduction_in_words(each, *this),
                    each.optimizers.empty() ? "none" : fmt::format("{}", fmt::join(each.optimizers, ", ")),
                    write_in_words(each)});
  }
  std::array<size_t, std::tuple_size_v<Row>> widths{};
  for (const Row& row : rows) {
    for (size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], row[c].size());
  }
  for (const Row& row : rows) {
    for (size_t c = 0; c + 1 < row.size(); ++c)
      text += fmt::format("{:<{}}  ", row[c], widths[c]);
    text += row.back() + "\n";
  }
  return text;
}

std::string Explanation::json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const ExplainedParameter& each : parameters)
    list.push_back(json_of(each));
  return to_text({{"title", title},
                  {"rank", rank},
                  {"ranks", ranks},
                  {"backward", backward},
                  {"backward_at", json_of(backward_at)},
                  {"failed", failed},
                  {"broken", broken},
                  {"parameters", std::move(list)}});
}

}  // namespace brigade::dist
