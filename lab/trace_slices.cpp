// Pairs the begin and end events of each lane or id; an event without its pair is an error.
#include <brigade/lab/trace_slices.h>

#include <brigade/core/error.h>

#include <fmt/format.h>

#include <map>
#include <tuple>
#include <utility>

namespace brigade::lab {

namespace {

using nlohmann::json;

// What is open on a lane, or of a rank's asynchronous events of one id: the last one that began
// ends first.
class OpenSlices {
 public:
  void begin(const json& event, TraceSlice slice) { open_[track_of(event)].push_back(std::move(slice)); }

  TraceSlice end(const json& event, double time) {
    std::vector<TraceSlice>& track = open_[track_of(event)];
    const std::string& name = event.at("name").get_ref<const std::string&>();
    if (track.empty() || track.back().name != name)
      throw ValueError("trace: '{}' of rank {} ends at {} us and did not begin", name, event.at("pid").get<int>(),
                       fmt::format("{}", time));
    TraceSlice slice = std::move(track.back());
    track.pop_back();
    slice.end = time;
    return slice;
  }

  void expect_none() const {
    for (const auto& [track, slices] : open_) {
      if (!slices.empty())
        throw ValueError("trace: '{}' of rank {} begins at {} us and does not end", slices.back().name,
                         slices.back().rank, fmt::format("{}", slices.back().begin));
    }
  }

 private:
  // The rank, whether it is a lane or an id, and its number or its text as JSON.
  using TrackName = std::tuple<int, bool, std::string>;

  // An id is one of the rank ("id2"); older traces have one of the whole trace ("id").
  static TrackName track_of(const json& event) {
    const auto local = event.find("id2");
    const auto global = event.find("id");
    const bool asynchronous = local != event.end() || global != event.end();
    const json& number = local != event.end() ? local->at("local") : asynchronous ? *global : event.at("tid");
    return {event.at("pid").get<int>(), asynchronous,
            number.is_string() ? number.get_ref<const std::string&>() : number.dump()};
  }

  std::map<TrackName, std::vector<TraceSlice>> open_;
};

}  // namespace

std::vector<TraceSlice> slices_of(const json& trace) {
  std::vector<TraceSlice> slices;
  OpenSlices open;
  for (const json& event : trace.at("traceEvents")) {
    const std::string& phase = event.at("ph").get_ref<const std::string&>();
    if (phase == "M") continue;
    const double time = event.at("ts");
    if (phase == "e" || phase == "E") {
      slices.push_back(open.end(event, time));
      continue;
    }
    if (phase != "i" && phase != "b" && phase != "B") continue;
    TraceSlice slice{event.at("pid"), event.at("name"), event.value("cat", ""), time, time,
                     phase == "i",    &event.at("args")};
    if (slice.instant) {
      slices.push_back(std::move(slice));
    } else {
      open.begin(event, std::move(slice));
    }
  }
  open.expect_none();
  return slices;
}

}  // namespace brigade::lab
