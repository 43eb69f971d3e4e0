// The forwards whose backward a reducer has to reduce, and which backward belongs to which of them.
//
// A rank whose loss reaches nothing of a wrapper takes part in its peers' backward: in the first that goes through a node
// which the forward recorded, or comes after a forward which recorded nothing, else when gradients are read.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/dist/reducer/observer.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace brigade::dist {

class Forwards {
 public:
  struct Forward {
    uint64_t from = 0, to = 0;  // the nodes it recorded, in terms of autograd::recorded_nodes()
    uint64_t number = 0;        // among those of all wrappers
    SourceLocation where = {};
    // Plan::number of the first backward that did not go through it. 0: it needs none.
    uint64_t passed_by = UINT64_MAX;
    uint64_t uses = 0;  // of gradients of the group since then
    bool failed = false;
  };

  // `rows`: samples in its batch, 0 if unknown.
  void begin(int64_t rows, SourceLocation where);
  // `failed`: by an exception. It waits for a backward only until the next one begins.
  void end(bool failed) noexcept;
  void forget() noexcept;

  // Whether a forward waits for its backward.
  bool are_pending() const noexcept { return pending_; }
  int64_t rows() const noexcept { return rows_; }  // of the latest
  // The number of the latest forward that waits for its backward; 0: none.
  uint64_t waiting() const noexcept { return all_.empty() ? 0 : all_.back().number; }

  // Whether `plan` goes through a node that one of them recorded.
  bool goes_through(const autograd::Plan& plan) const;
  // Whether `plan` may be the backward of one of them: it goes through one, or one recorded nothing.
  bool may_be_in(const autograd::Plan& plan) const;
  // Whether a forward waits and `plan` counts as its backward. `own`: it reaches a parameter of no other reducer.
  bool take_part_in(const autograd::Plan& plan, bool own) const;
  // The first forward that `plan` is the backward of, else the latest one (others are evaluations); null without any.
  const Forward* of(const autograd::Plan& plan) const;

  // A backward that reaches nothing of the reducer does not seem to be theirs.
  void pass_by(const autograd::Plan& plan);
  // The reducer takes part in this backward.
  void take_part(const autograd::Plan& plan);
  // Gradients of the group were used; no forward so far needs a backward.
  void note_use() noexcept;
  void need_none() noexcept;
  // The forward of the peers' backward, if this rank's reached nothing of it: of those that need one and that the
  // latest backward up to `backward` was the first to pass by, the first since gradients were used. Number 0: not known.
  Forward open(uint64_t backward = UINT64_MAX) const noexcept;
  bool were_passed_by() const noexcept { return !passed_by_.empty(); }
  // The forward that needs a backward and was left out; number and passed_by are 0 if there is none. Only if
  // were_passed_by().
  Forward left_out() const noexcept { return open(passed_by_.back().number()); }
  // Takes the backward to which the reducer's part is attributed: the latest that was meant to reach it, else the first
  // that left out the open forward. Only if were_passed_by().
  TracedBackward take_passed_by(const std::function<bool(const TracedBackward&)>& is_meant);

  // The latest backward that was attributed to these forwards and reached nothing on any rank.
  const std::optional<TracedBackward>& unreached_by() const noexcept { return unreached_by_; }
  void set_unreached_by(const TracedBackward& backward) { unreached_by_ = backward; }
  // Whether backwards since the forward have reached parameters of another reducer.
  bool others_were_reached() const noexcept { return others_reached_; }
  void note_others_reached() noexcept { others_reached_ = true; }

 private:
  bool pending_ = false;
  int64_t rows_ = 0;
  std::vector<Forward> all_;
  // The latest backwards since then and since this reducer took part in one, that do not seem to belong to them.
  std::vector<TracedBackward> passed_by_;
  std::optional<TracedBackward> unreached_by_;
  bool others_reached_ = false;
};

}  // namespace brigade::dist
