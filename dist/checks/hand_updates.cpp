// Summarizes the parameters before forwards; where the ranks' words differ, exchanges the summaries and names the writes.
#include <brigade/dist/checks/hand_updates.h>

#include <brigade/autograd/tape.h>
#include <brigade/core/fnv.h>
#include <brigade/dist/checks/step_habits.h>
#include <brigade/dist/diagnosis/wire.h>
#include <brigade/dist/errors/majority.h>
#include <brigade/dist/reducer/round.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>

namespace brigade::dist {
namespace {

// Of a device only the first elements: an update changes all alike, and the rest would have to be copied.
GradientValues summary_of(const Tensor& parameter) {
  const autograd::Tape::Pause pause;
  const Tensor values = parameter.detach();
  return values.device().type == kCPU ? values_of(values) : values_of_some(values);
}

// Closer than GradientValues::kTolerance: updates by other gradients differ little at first. Only 16-bit elements are
// rounded that coarsely by processors that compute in another order.
double tolerance_of(DType dtype) { return dtype == kFloat32 || dtype == kFloat64 ? 1e-4 : GradientValues::kTolerance; }

// What a rank sends of each parameter: direction and size before the first forward, then before the latest; nothing if an
// optimizer holds it.
using Summaries = std::vector<std::vector<double>>;

// The ranks whose numbers `at` and after differ from the usual ones; all have some.
std::vector<int> odd_in(const std::vector<std::vector<double>>& by_rank, size_t at, DType dtype) {
  return odd_ranks(by_rank, [&](const auto& a, const auto& b) {
    return GradientValues{a[at], a[at + 1]}.is_like({b[at], b[at + 1]}, tolerance_of(dtype));
  });
}

}  // namespace

std::vector<StepOnRank::Edit> edits_by_hand(const std::string& parameter, const autograd::LastWrite& last) {
  std::vector<StepOnRank::Edit> edits;
  for (const autograd::WriteByHand& each : last.all_by_hand)
    edits.push_back({parameter, each.op, each.where});
  return edits;
}

void HandUpdates::find_updated() {
  if (writes_ == autograd::writes_by_hand()) return;
  writes_ = autograd::writes_by_hand();
  updated_.clear();
  versions_.clear();
  latest_.clear();
  const auto held = held_by_optimizers();
  for (uint32_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& parameter = parameters_[i].tensor;
    if (!parameter.requires_grad() || held.contains(parameter.impl())) continue;
    const std::optional<autograd::LastWrite> last = autograd::last_write(parameter);
    if (last && last->by_hand) updated_.push_back(i);
  }
}

void HandUpdates::on_forward() {
  find_updated();
  std::vector<uint32_t> versions;
  for (const uint32_t i : updated_)
    versions.push_back(parameters_[i].tensor.version());
  if (versions != versions_) {
    for (const uint32_t i : updated_)
      latest_[i] = summary_of(parameters_[i].tensor);
    versions_ = std::move(versions);
  }
  if (std::exchange(is_first_, false)) first_ = latest_;
}

uint64_t HandUpdates::value() {
  if (is_first_ || first_.empty()) return 0;
  uint64_t hash = kFnvStart;
  for (const auto& [position, values] : first_) {
    for (const double each : {values.direction, values.size})
      hash = fnv_step(hash, std::bit_cast<uint64_t>(each));
  }
  return mix(hash);
}

void HandUpdates::on_finish(const Round& round) {
  differed_ = differ_ ? differed_ + 1 : 0;  // unread, and so alike, where a hook sends nothing
  if (std::exchange(is_first_, true)) {     // no forward since the latest reduced backward: what they hold now counts
    first_.clear();
    latest_.clear();
    versions_.clear();
  }
  // Ranks may keep differing within the tolerance: look less and less often.
  if (std::has_single_bit(differed_)) compare(round);
}

void HandUpdates::compare(const Round& round) const {
  std::pair<StepOnRank, Summaries> own;
  const auto held = held_by_optimizers();
  for (uint32_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& tensor = parameters_[i].tensor;
    own.second.emplace_back();
    if (held.contains(tensor.impl()) || !tensor.requires_grad()) continue;
    for (const Values* const values : {&first_, &latest_}) {
      const auto known = values->find(i);  // otherwise not written to, and the same since
      const GradientValues summary = known == values->end() ? summary_of(tensor) : known->second;
      own.second.back().insert(own.second.back().end(), {summary.direction, summary.size});
    }
    const std::optional<autograd::LastWrite> last = autograd::last_write(tensor);
    if (last) std::ranges::move(edits_by_hand(parameters_[i].name, *last), std::back_inserter(own.first.writes));
  }
  std::vector<StepOnRank> ranks;
  std::vector<Summaries> summaries;
  for (const std::string& text : round.exchange(to_text(own), "parameters that the program has updated by itself")) {
    auto [rank, of_rank] = decoded<std::pair<StepOnRank, Summaries>>(text);
    ranks.push_back(std::move(rank));
    summaries.push_back(std::move(of_rank));
  }
  std::vector<GradientsApart> apart;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    std::vector<std::vector<double>> by_rank;
    for (const Summaries& of_rank : summaries)
      by_rank.push_back(of_rank[i]);
    const auto is_empty = [](const auto& each) { return each.empty(); };
    if (std::ranges::any_of(by_rank, is_empty)) continue;
    const DType dtype = parameters_[i].tensor.dtype();
    const std::vector<int> odd = odd_in(by_rank, 2, dtype);
    if (!odd.empty() && !odd_in(by_rank, 0, dtype).empty())
      apart.push_back({parameters_[i], outvoted(odd, ranks.size())});
  }
  raise(round, parameters_written(ranks, apart));
}

void HandUpdates::raise(const Round& round, std::vector<Verdict> verdicts) const {
  if (verdicts.empty()) return;
  for (Verdict& verdict : verdicts) {
    verdict.iteration = round.number();
    if (verdict.cause.op != "copy_" && verdict.cause.op != "load_state_dict")
      verdict.advice = "update by the averaged gradients and by the same rule on every rank, or let an optimizer do it";
    set_message(verdict, fmt::format("{}: {}, on {}, found in backward {} at {}", verdict.what,
                                     names_in_words(verdict.parameters), ranks_in_words(verdict.ranks), round.number(),
                                     to_string(round.where())));
  }
  const ProcessGroup& group = *round.setup().group;
  const std::string message = in_words(verdicts) + group.names().legend(group.size());
  throw ConsistencyError(message, std::move(verdicts), round.where());
}

}  // namespace brigade::dist
