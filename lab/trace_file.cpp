// Streams the events one by one, since there are many; everything else becomes JSON values.
#include <brigade/lab/trace_file.h>

#include <brigade/core/error.h>
#include <brigade/lab/json.h>

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace brigade::lab {
namespace {

using nlohmann::json;

constexpr const char* kNoTrace = "{} is neither a trace of Brigade nor what explain --json writes: {}";

// The SAX handler for nlohmann's parser. Each open bracket has a Place that says what its contents are.
class TraceParser {
 public:
  explicit TraceParser(std::string source) : source_(std::move(source)) {}

  bool null() { return scalar(nullptr); }
  bool boolean(bool value) { return scalar(value); }
  bool number_integer(int64_t value) { return scalar(value); }
  bool number_unsigned(uint64_t value) { return scalar(value); }
  bool number_float(double value, const std::string&) { return scalar(value); }
  bool string(std::string& value) { return scalar(std::move(value)); }
  bool binary(json::binary_t&) { return false; }  // JSON has none

  bool start_object(size_t) { return start(json::value_t::object); }
  bool start_array(size_t) { return start(json::value_t::array); }
  bool end_object() { return end(); }
  bool end_array() { return end(); }
  bool key(std::string& key) {
    switch (places_.back()) {
      case Place::kArguments: arguments_.key(key); return true;
      case Place::kRoot:
      case Place::kRow:
      case Place::kValue:
        member_ = member_of(key);
        facts_.key(key);
        return true;
      default: member_ = member_of(key); return true;
    }
  }
  bool parse_error(size_t position, const std::string&, const json::exception&) {
    flaw_ = fmt::format("it is no JSON from byte {} on", position);
    return false;
  }

  const std::string& flaw() const { return flaw_; }

  // Call it when everything has been read. Throws json::exception when something is missing.
  Trace take() {
    json all = facts_.take();
    const bool is_row = all.contains("results");
    Trace trace{.facts = std::move(is_row ? all.at("results").at(0) : all.at("brigade")), .slices = {}};
    std::optional<SliceCollector>& events = events_[is_row ? 1 : 0];
    if (!events) throw ValueError(kNoTrace, source_, "it has no list \"traceEvents\"");
    trace.slices = events->take();
    return trace;
  }

 private:
  // kRow is the first element of a list "results"; it and the root have events. kRest is the ignored part of an
  // event.
  enum class Place { kRoot, kResults, kRow, kEvents, kEvent, kId, kArguments, kRest, kValue };

  // The meaning of a key, if its place knows it.
  enum class Member {
    kOther,
    kResults,
    kEvents,
    kPhase,
    kName,
    kCategory,
    kRank,
    kLane,
    kId,
    kLocalId,
    kLocal,
    kTime,
    kArguments
  };
  static Member member_of(std::string_view key) {
    constexpr std::pair<std::string_view, Member> kMembers[] = {{"name", Member::kName},
                                                                {"ph", Member::kPhase},
                                                                {"pid", Member::kRank},
                                                                {"tid", Member::kLane},
                                                                {"ts", Member::kTime},
                                                                {"args", Member::kArguments},
                                                                {"cat", Member::kCategory},
                                                                {"id2", Member::kLocalId},
                                                                {"local", Member::kLocal},
                                                                {"id", Member::kId},
                                                                {"traceEvents", Member::kEvents},
                                                                {"results", Member::kResults}};
    for (const auto& [name, member] : kMembers) {
      if (name == key) return member;
    }
    return Member::kOther;
  }

  // The place of the contents of a list or an object that begins here.
  Place place_of(json::value_t type) {
    if (places_.empty()) return type == json::value_t::object ? Place::kRoot : Place::kValue;
    const bool is_object = type == json::value_t::object;
    switch (places_.back()) {
      case Place::kRoot:
        if (!is_object && member_ == Member::kResults) return Place::kResults;
        [[fallthrough]];
      case Place::kRow: return !is_object && member_ == Member::kEvents ? Place::kEvents : Place::kValue;
      case Place::kResults: return rows_++ == 0 && is_object ? Place::kRow : Place::kValue;
      case Place::kEvents:
        if (!is_object) throw ValueError("{}: an event of the trace is no object", source_);
        return Place::kEvent;
      case Place::kEvent:
        if (member_ == Member::kArguments) return Place::kArguments;
        return is_object && member_ == Member::kLocalId ? Place::kId : Place::kRest;
      case Place::kArguments: return Place::kArguments;
      case Place::kId:
      case Place::kRest: return Place::kRest;
      case Place::kValue: break;
    }
    return Place::kValue;
  }

  bool start(json::value_t type) {
    if (std::ssize(places_) >= kDeepestJson) {
      flaw_ = fmt::format("it is nested deeper than {} times", kDeepestJson);
      return false;
    }
    const Place place = place_of(type);
    if (place == Place::kEvents) {
      events_now_ = places_.back() == Place::kRow ? 1 : 0;
      events_[events_now_].emplace(source_);
    } else if (place == Place::kEvent) {
      event_ = {};
    } else if (place == Place::kArguments) {
      arguments_.start(type);
    } else if (place != Place::kId && place != Place::kRest) {
      facts_.start(type);
    }
    places_.push_back(place);
    return true;
  }

  bool end() {
    const Place place = places_.back();
    places_.pop_back();
    if (place == Place::kEvent) {
      events_[events_now_]->add(event_);
    } else if (place == Place::kArguments) {
      arguments_.end();
      if (places_.back() == Place::kEvent) event_.arguments = arguments_.take();
    } else if (place != Place::kEvents && place != Place::kId && place != Place::kRest) {
      facts_.end();
    }
    return true;
  }

  template <typename Value>
  bool scalar(Value value) {
    const Place place = places_.empty() ? Place::kValue : places_.back();
    switch (place) {
      case Place::kEvents: throw ValueError("{}: an event of the trace is no object", source_);
      case Place::kEvent: take_member(std::move(value)); break;
      case Place::kId:
        if (member_ == Member::kLocal) event_.id = text_of(std::move(value));
        break;
      case Place::kArguments: arguments_.add(std::move(value)); break;
      case Place::kRest: break;
      case Place::kResults: ++rows_; [[fallthrough]];
      default: facts_.add(std::move(value));
    }
    return true;
  }

  template <typename Value>
  void take_member(Value value) {
    constexpr bool kIsText = std::is_same_v<Value, std::string>;
    constexpr bool kIsNumber = std::is_arithmetic_v<Value> && !std::is_same_v<Value, bool>;
    if (member_ == Member::kArguments) {
      event_.arguments = std::move(value);
    } else if (member_ == Member::kLane) {
      event_.lane = text_of(std::move(value));
    } else if (member_ == Member::kId) {
      // If an event has both, "id2" counts; "id" is from older traces, where ids are unique in the whole trace.
      if (!event_.id) event_.id = text_of(std::move(value));
    } else if (member_ == Member::kTime) {
      if constexpr (kIsNumber) event_.time = static_cast<double>(value);
    } else if (member_ == Member::kRank) {
      if constexpr (kIsNumber && std::is_integral_v<Value>) event_.rank = static_cast<int>(value);
    } else if constexpr (kIsText) {
      if (member_ == Member::kPhase) event_.phase = std::move(value);
      if (member_ == Member::kName) event_.name = std::move(value);
      if (member_ == Member::kCategory) event_.category = std::move(value);
    }
  }

  // Formats a number as JSON does.
  template <typename Value>
  static std::string text_of(Value value) {
    if constexpr (std::is_same_v<Value, std::string>) {
      return value;
    } else if constexpr (std::is_integral_v<Value> && !std::is_same_v<Value, bool>) {
      return std::to_string(value);
    } else {
      return json(value).dump();
    }
  }

  std::string source_;
  std::string flaw_;
  std::vector<Place> places_;
  Member member_ = Member::kOther;  // of the latest key
  int64_t rows_ = 0;
  JsonBuilder facts_, arguments_;
  TraceEvent event_;
  std::optional<SliceCollector> events_[2];  // of the root, and of a row
  size_t events_now_ = 0;
};

Trace parse_trace(std::string_view text, const std::string& source) {
  TraceParser parser(source);
  if (!json::sax_parse(text.begin(), text.end(), &parser)) throw ValueError(kNoTrace, source, parser.flaw());
  try {
    return parser.take();
  } catch (const json::exception& error) {
    throw ValueError(kNoTrace, source, error.what());
  }
}

}  // namespace

Trace read_trace(const std::string& command, const std::string& file) {
  const FileText text = read_text(command, file);
  return parse_trace(text.view(), command + ": " + file);
}

Trace trace_of_text(std::string_view text) { return parse_trace(text, "trace"); }

}  // namespace brigade::lab
