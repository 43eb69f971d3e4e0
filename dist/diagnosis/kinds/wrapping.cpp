// The kinds of notes on what is wrapped.
#include <brigade/dist/diagnosis/advice.h>
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

namespace brigade::dist {

// nothing_to_reduce: a wrapped module has no parameter that requires grad.
//
// Severity: note
// When: once
// Causes: `unknown`
Verdict nothing_to_reduce(const Moment& moment) {
  Verdict verdict = verdict_at(moment, "nothing_to_reduce", Severity::Note, CauseKind::Unknown);
  verdict.ranks = moment.every_rank();
  verdict.cause.text =
      "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient";
  verdict.advice = "use the module without a wrapper, or unfreeze its parameters before wrapping";
  set_message(verdict, "Nothing to reduce: the wrapper made at " + to_string(moment.where) + " passes calls on");
  return verdict;
}

// strides_differ: a parameter's strides differ from those of its bucket slot, so each backward rearranges its gradient.
//
// Severity: note
// When: once
// Causes: `wasteful`
Verdict strides_differ(const NamedParameter& parameter, const Moment& moment) {
  Verdict verdict = verdict_at(moment, "strides_differ", Severity::Note, CauseKind::Wasteful);
  verdict.ranks = moment.every_rank();
  verdict.parameters.push_back(about(parameter, {}, {}));
  const Shape& sizes = parameter.tensor.sizes();
  verdict.cause.text = fmt::format("its strides are {}, those of its gradient in the bucket {}",
                                   to_string(parameter.tensor.strides()), to_string(contiguous_strides(sizes)));
  verdict.advice = "make the parameter contiguous before wrapping";
  set_message(verdict, fmt::format("Gradient rearranged in each backward: `{}` {}, of the wrapper made at {}",
                                   parameter.name, to_string(sizes), to_string(moment.where)));
  return verdict;
}

// nothing_unused: find_unused_parameters is on, but every parameter was used in every backward so far.
//
// Severity: note
// When: once
// Causes: `wasteful`

namespace {

// `flag_bytes`: size of the flags of all buckets.
Verdict nothing_unused(int64_t flag_bytes, size_t buckets, const Moment& moment) {
  Verdict verdict = verdict_at(moment, "nothing_unused", Severity::Note, CauseKind::Wasteful);
  verdict.ranks = moment.every_rank();
  verdict.cause.text = fmt::format(
      "it costs nothing here ({} of flags in {} buckets, which strict mode sends as well), but hides a forgotten parameter",
      bytes_in_words(flag_bytes), buckets);
  verdict.advice = "leave the flag out";
  set_message(verdict,
              fmt::format("find_unused_parameters is on, and every parameter was used in the first {} backwards "
                          "(at {})",
                          moment.iteration, to_string(moment.where)));
  return verdict;
}

class NothingUnused final : public Advice {
 public:
  std::optional<Verdict> examine(FinishedBackward& backward) override {
    if (!backward.find_unused_parameters()) return std::nullopt;
    const Moment moment = backward.moment();
    const Outcome& outcome = backward.outcome();
    for (const int users : outcome.users)
      some_unused_ = some_unused_ || users != moment.ranks - outcome.joined;
    if (some_unused_ || moment.iteration != kBackwards) return std::nullopt;
    size_t flag_bytes = 0;  // one flag for each parameter, of its dtype
    for (const NamedParameter& parameter : backward.parameters())
      flag_bytes += itemsize(parameter.tensor.dtype());
    return nothing_unused(static_cast<int64_t>(flag_bytes), backward.buckets(), moment);
  }

 private:
  static constexpr uint64_t kBackwards = 10;

  bool some_unused_ = false;
};

const AddAdvice add_nothing_unused("nothing_unused", [] { return std::make_unique<NothingUnused>(); });

}  // namespace

}  // namespace brigade::dist
