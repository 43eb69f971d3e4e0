// Parameters that the program updates by itself, without an optimizer whose step would be checked: the ranks compare them
// in each reduced backward.
#pragma once

#include <brigade/autograd/write_log.h>
#include <brigade/dist/buckets/words.h>
#include <brigade/dist/checks/gradient_values.h>
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/errors/named_parameter.h>
#include <brigade/dist/errors/verdict.h>
#include <brigade/dist/reducer/observer.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace brigade::dist {

// The writes by hand to a parameter, oldest first.
std::vector<StepOnRank::Edit> edits_by_hand(const std::string& parameter, const autograd::LastWrite& last);

class HandUpdates final : public ReducerObserver, private SentWord {
 public:
  explicit HandUpdates(std::vector<NamedParameter> parameters) : parameters_(std::move(parameters)) {}

  std::vector<SentWord*> words() override { return {this}; }
  void on_forward() override;
  void on_begin(const Round&, const autograd::Plan*) override { differ_ = false; }
  // Throws the same ConsistencyError on every rank if their parameters differ.
  void on_finish(const Round& round) override;

 private:
  using Values = std::map<uint32_t, GradientValues>;  // by position, of updated_

  WordKind kind() const override { return WordKind::Number; }
  uint64_t value() override;
  void read(const WordReading& reading) override { differ_ = differ_ || !reading.all_equal; }
  void find_updated();
  void compare(const Round& round) const;
  void raise(const Round& round, std::vector<Verdict> verdicts) const;

  std::vector<NamedParameter> parameters_;
  std::vector<uint32_t> updated_;  // positions: written by hand, and no optimizer holds them
  uint64_t writes_ = 0;            // autograd::writes_by_hand() when they were found
  // Before the first and the latest forward since the latest reduced backward. Weights that are only changed for a while
  // (adapted, perturbed, averaged) are alike in one of them.
  Values first_, latest_;
  bool is_first_ = true;
  std::vector<uint32_t> versions_;  // of latest_
  bool differ_ = false;
  uint64_t differed_ = 0;  // backwards in a row in which the words have
};

}  // namespace brigade::dist
