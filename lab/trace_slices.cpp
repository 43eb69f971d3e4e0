// Pairs the begin and end events of each lane or id; an unpaired event is an error.
#include <brigade/lab/trace_file.h>

#include <brigade/core/error.h>

#include <fmt/format.h>

#include <utility>

namespace brigade::lab {

template <typename T>
T& SliceCollector::expect(std::optional<T>& member, const char* key) const {
  if (!member) throw ValueError("{}: event {} of the trace lacks \"{}\"", source_, events_, key);
  return *member;
}

SliceCollector::TrackName SliceCollector::track_of(TraceEvent& event) const {
  const int rank = expect(event.rank, "pid");
  if (event.id) return {rank, true, std::move(*event.id)};
  return {rank, false, std::move(expect(event.lane, "tid"))};
}

TraceSlice SliceCollector::begin(TraceEvent& event) {
  nlohmann::json& arguments = expect(event.arguments, "args");
  if (!arguments_ || *arguments_ != arguments)
    arguments_ = std::make_shared<const nlohmann::json>(std::move(arguments));
  const double time = expect(event.time, "ts");
  return {.rank = expect(event.rank, "pid"),
          .name = std::move(expect(event.name, "name")),
          .category = std::move(event.category),
          .begin = time,
          .end = time,
          .instant = *event.phase == "i",
          .arguments = arguments_};
}

void SliceCollector::end(TraceEvent& event) {
  const double time = expect(event.time, "ts");
  const std::string& name = expect(event.name, "name");
  std::vector<TraceSlice>& track = open_[track_of(event)];
  if (track.empty() || track.back().name != name)
    throw ValueError("{}: '{}' of rank {} ends at {} us and did not begin", source_, name, *event.rank,
                     fmt::format("{}", time));
  slices_.push_back(std::move(track.back()));
  slices_.back().end = time;
  track.pop_back();
}

void SliceCollector::add(TraceEvent& event) {
  ++events_;
  const std::string& phase = expect(event.phase, "ph");
  if (phase == "e" || phase == "E") {
    end(event);
  } else if (phase == "i") {
    slices_.push_back(begin(event));
  } else if (phase == "b" || phase == "B") {
    open_[track_of(event)].push_back(begin(event));
  }
}

std::deque<TraceSlice> SliceCollector::take() {
  for (const auto& [track, slices] : open_) {
    if (!slices.empty())
      throw ValueError("{}: '{}' of rank {} begins at {} us and does not end", source_, slices.back().name,
                       slices.back().rank, fmt::format("{}", slices.back().begin));
  }
  return std::move(slices_);
}

}  // namespace brigade::lab
