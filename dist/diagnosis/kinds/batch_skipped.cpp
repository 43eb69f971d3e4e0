// batch_skipped: a forward threw on one rank, which went on with its next batch, while the others did not.
//
// Severity: warning
// When: end of backward
// Causes: `exception`
#include <brigade/dist/diagnosis/advice.h>
#include <brigade/dist/errors/wire.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

namespace brigade::dist {

void BegunForwards::add(SourceLocation at) {
  const auto known = std::ranges::find_if(lines, [&](const AtLine& each) {
    return each.where.line() == at.line() && each.where.file_name() == at.file_name();
  });
  (known == lines.end() ? lines.emplace_back(AtLine{at}) : *known).count += 1;
}

namespace {

// What a rank sends: its forwards by line, and the one that threw.
struct OfRank {
  std::map<std::string, int64_t> lines;
  std::string error;
  Place where;

  explicit OfRank(const BegunForwards& forwards) : error(forwards.error), where(forwards.where) {
    for (const BegunForwards::AtLine& each : forwards.lines)
      lines[to_string(Place(each.where))] += each.count;
  }
  OfRank() = default;
  int64_t begun_at(const Place& line) const {
    const auto known = lines.find(to_string(line));
    return known == lines.end() ? 0 : known->second;
  }
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OfRank, lines, error, where)

// Ranks that agree to leave out a batch have begun as many forwards at the line as the others.
std::optional<Verdict> batch_skipped(std::span<const OfRank> by_rank, const Moment& moment) {
  const auto threw = std::ranges::find_if(by_rank, [](const OfRank& each) { return !each.error.empty(); });
  if (threw == by_rank.end()) return std::nullopt;
  const int rank = static_cast<int>(threw - by_rank.begin());
  std::vector<int> behind;
  for (size_t r = 0; r < by_rank.size(); ++r)
    if (by_rank[r].begun_at(threw->where) < threw->begun_at(threw->where)) behind.push_back(static_cast<int>(r));
  if (behind.empty()) return std::nullopt;
  Verdict verdict = verdict_at(moment, "batch_skipped", Severity::Warning, CauseKind::Exception);
  verdict.ranks = {rank};
  verdict.cause.place = threw->where;
  verdict.cause.text = fmt::format(
      "its forward at {} threw \"{}\", which the program caught; from here on, gradients of different batches are averaged",
      to_string(threw->where), threw->error);
  verdict.advice =
      "let all ranks skip together (all_reduce whether one has failed, before backward), run the same batch again, or let "
      "the exception end the job";
  set_message(verdict, fmt::format("Rank {} skipped a batch and {} did not, in backward {} at {}", rank,
                                   ranks_in_words(behind), moment.iteration, to_string(moment.where)));
  return verdict;
}

class BatchSkipped final : public Advice, private Statistic {
 public:
  Statistic* statistic() override { return this; }
  std::optional<Verdict> examine(FinishedBackward& backward) override {
    if (!std::exchange(any_, false) || said_) return std::nullopt;
    std::vector<OfRank> by_rank;
    for (const std::string& text : backward.exchange(to_text(OfRank(own_)), "forwards of which one threw"))
      by_rank.push_back(decoded<OfRank>(text));
    std::optional<Verdict> found = batch_skipped(by_rank, backward.moment());
    said_ = found.has_value();
    return found;
  }

 private:
  Kind kind() const override { return Kind::Measure; }
  void begin(const StartedBackward& backward) override { own_ = backward.forwards; }
  uint64_t value() override { return own_.error.empty() ? 0 : 1; }
  void read(const WordReading& reading) override { any_ = any_ || reading.mean > 0; }

  BegunForwards own_;
  bool any_ = false;  // on any rank a forward threw
  bool said_ = false;
};

const AddAdvice add_batch_skipped("batch_skipped", [] { return std::make_unique<BatchSkipped>(); });

}  // namespace
}  // namespace brigade::dist
