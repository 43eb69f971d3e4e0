// Joinable: what can take part in a join (join.h): a wrapper, an optimizer, or a user-defined class that exchanges
// something in each iteration.
//
//   class Counter : public dist::Joinable {
//    public:
//     void operator()() {
//       dist::Join::notify_join_context(*this);  // before its own collectives
//       group_->all_reduce(ones, {}, where)->wait();
//     }
//     std::unique_ptr<dist::JoinHook> join_hook(const dist::JoinOptions&) override;  // does the same with zeros
//     dist::ProcessGroup& join_process_group() const noexcept override { return *group_; }
//   };
//
// Source: torch.distributed.algorithms.join. There the first joinable notifies for all, once per iteration; here each
// one announces its own collectives, so they may come in any order and number. The words are in host memory on every
// backend, so there is no join_device.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <cstdint>
#include <memory>
#include <string>

namespace brigade::dist {

class Join;
class JoinedForward;

struct JoinOptions {
  // true: a gradient is always divided by the world size, so that each sample counts the same over the epoch. false:
  // it is divided by the number of ranks that still have data.
  bool divide_by_initial_world_size = true;
  // When a rank runs out of data, raise an error on every rank instead of shadowing.
  bool throw_on_early_termination = false;
  // false: the Join does nothing, for inputs that are known to be even. Must be the same on every rank.
  bool enable = true;
};

// What ranks with data are about to do.
struct JoinTurn {
  int64_t what;  // as announced
  int source;    // the highest rank with data
  SourceLocation where;
};

// Created by a joinable for one join; lives as long as the join is open.
class JoinHook {
 public:
  JoinHook() = default;
  JoinHook(const JoinHook&) = delete;
  JoinHook& operator=(const JoinHook&) = delete;
  virtual ~JoinHook() = default;

  // Called on a rank without data, for each announcement of the joinable on the ranks with data: takes part in the
  // collectives that follow the announcement there.
  virtual void main_hook() {}
  // The same, for a joinable that announces different things.
  virtual void main_hook_at(const JoinTurn& turn) {
    static_cast<void>(turn);
    main_hook();
  }
  // Called once all ranks have finished, on every rank. `is_last_joiner`: this rank had data to the end, so its state
  // is the newest; true on at least one rank.
  virtual void post_hook(bool is_last_joiner) { static_cast<void>(is_last_joiner); }
  // Whether a backward reduces for this joinable, possibly together with others.
  virtual bool reduces_in_backward() const noexcept { return false; }
  // The announcement in words, for messages: "a reduced backward".
  virtual std::string describe(int64_t what) const;
};

class Joinable {
 public:
  Joinable() = default;
  Joinable(const Joinable&) = delete;
  Joinable& operator=(const Joinable&) = delete;
  virtual ~Joinable() = default;

  virtual std::unique_ptr<JoinHook> join_hook(const JoinOptions& options) = 0;
  // The same group for all joinables of a join.
  virtual ProcessGroup& join_process_group() const noexcept = 0;

 protected:
  // Options of the open join that this object takes part in; null outside.
  const JoinOptions* join_options() const noexcept;
  // The line that opened that join, or the line that is ending it.
  SourceLocation join_where() const noexcept;

 private:
  friend class Join;
  friend class JoinedForward;
  Join* join_ = nullptr;
};

}  // namespace brigade::dist
