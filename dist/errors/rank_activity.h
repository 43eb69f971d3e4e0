// What a rank does outside of collectives, and how it left the others.
#pragma once

#include <brigade/core/place.h>
#include <brigade/dist/errors/collective_info.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace brigade::dist {

// --- What a rank does outside of collectives: numbers and names, which collective.h compares, and their text.

// A line of the user's source, as cheap to copy and to compare as two numbers.
struct Line {
  Name file = {};
  uint32_t number = 0;  // 0: not known

  Line() noexcept = default;
  Line(Name file, uint32_t number) noexcept : file(file), number(number) {}
  Line(const SourceLocation& where);  // NOLINT: a location is a line
  explicit operator bool() const noexcept { return number != 0; }
  bool operator==(const Line&) const = default;
};
std::string in_words(const Line& line);  // "train.cpp:12"; "" where it is not known
Place place_of(const Line& line);

enum class Doing : uint8_t {
  Nothing,
  Program,          // as the program itself described it
  Forward,          // of a wrapper
  AfterForward,     // code of the program
  Backward,         // of the wrappers in forwards(); empty: of no wrapper
  AfterBackward,    // code of the program
  RefusedBackward,  // its loss has no history
  Step,             // of an optimizer
  AfterStep         // code of the program
};

struct RankActivity {
  static constexpr size_t kMostForwards = 4;
  static constexpr size_t kMostMissed = 2;

  // A wrapper and a forward of it that the backward comes from.
  struct OfForward {
    Owner wrapper = {};
    Line forward = {};  // unknown if it has no number
    bool operator==(const OfForward&) const = default;
  };
  // A wrapper that the rank goes on without.
  struct Missed {
    enum class How : uint8_t { ForwardUnderNoGrad, BackwardReachesNothing };
    How how = How::ForwardUnderNoGrad;
    Owner wrapper = {};
    Line line = {};    // of the forward, or of the backward
    Line opened = {};  // of the guard of that forward, where it is known
    bool operator==(const Missed&) const = default;
  };

  Doing doing = Doing::Nothing;
  Owner owner = {};              // the wrapper, or the optimizer that steps
  uint32_t local_backwards = 0;  // Step: backwards under no_sync that it uses
  Line after = {};               // AfterBackward, AfterStep: that backward or step
  Line where = {};               // where the rank does it
  std::string text = {};         // Program: its description

  // Filled by add().
  std::array<OfForward, kMostForwards> first_forwards = {};
  std::array<Missed, kMostMissed> first_missed = {};
  uint8_t forward_count = 0, missed_count = 0;

  // Entries for which there is no room are left out.
  void add(const OfForward& forward) noexcept;
  void add(const Missed& missed) noexcept;
  std::span<const OfForward> forwards() const noexcept { return std::span(first_forwards).first(forward_count); }
  std::span<const Missed> missed() const noexcept { return std::span(first_missed).first(missed_count); }

  bool operator==(const RankActivity&) const = default;
};

// "a step of SGD, with 2 backwards under no_sync not reduced"; "a backward of DDP(A), of the forward at a.cpp:3; of
// DDP(B), of the forward at a.cpp:4, after the backward at a.cpp:9 reached nothing of DDP(C)"; "" for nothing. Leaves
// out `where`.
std::string in_words(const RankActivity& activity);

// --- How a rank left the others: a code that decides, and text for people.

struct Departure {
  enum class How : uint32_t {
    Running,          // it has not
    Left,             // its group was destroyed, or its process ended with status 0
    LeftByException,  // its group was destroyed while an exception was in flight
    Failed,           // it reported a failure; `words`: the text of its exception
    Died,             // its process ended otherwise
    GaveUp,           // it gave up waiting for others
    Unknown,          // it is gone, for an unknown reason
  };
  How how = How::Running;
  std::string words;

  bool has_ended() const noexcept { return how != How::Running; }
  bool by_exception() const noexcept { return how == How::Failed || how == How::LeftByException; }
  bool operator==(const Departure&) const = default;
};

// The text that follows "rank 1": "left the group", "failed", "died".
std::string way_of(const Departure& end);
// The same with what else is known: "failed: no label", "died (process 12 has ended)".
std::string in_words(const Departure& end);

}  // namespace brigade::dist
