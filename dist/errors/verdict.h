// Verdicts: for each group of parameters with one cause, which ranks and parameters are concerned, why, and what to do.
#pragma once

#include <brigade/core/place.h>
#include <brigade/dist/errors/named_parameter.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace brigade::dist {

// Why a parameter never became ready on a rank.
enum class CauseKind : uint8_t {
  ModuleNotCalled,      // its module did not run since the last backward
  NotUsed,              // its module ran, but no operation took the parameter
  OutputDropped,        // used, but nothing it fed reached the root of backward
  Detached,             // the path was cut by detach()
  NoGrad,               // used under no_grad
  NotDifferentiable,    // the path went through an operation without a derivative
  ReadAsNumber,         // its value left the graph through item() or to_vector()
  Collective,           // its values reached the loss through a collective, which sends no gradient back
  GradientNotReturned,  // the backward of an operation returned nothing for it
  OtherThread,          // forward or backward ran on a thread that keeps no record
  NotRecorded,          // diagnosis is off
  Frozen,               // requires_grad was switched off after wrapping
  LossNotConnected,     // the root of backward does not depend on the module at all
  Replaced,             // the module's parameter was replaced by another after wrapping
  GraphChanged,         // static_graph: another set was used than in the first backward
  Thawed,               // requires_grad was switched on after wrapping
  Added,                // registered after wrapping
  OutsideWrapper,       // belongs to no wrapped module
  NotReduced,           // accumulated under no_sync, and not reduced since
  SetByHand,            // the gradient was put there, not made by an observed backward
  EditedByHand,         // the gradient was changed after (or before) its reduction
  NotCleared,           // the gradient still holds what an earlier step used
  NoBackward,           // none since the gradient was cleared or used
  ReducedTwice,         // averaged by the wrapper, and by hand again
  NotHeld,              // no optimizer has it
  HookDiffers,          // gradient hooks are not the same on all ranks
  OptionsDiffer,        // hyperparameters of an optimizer
  StepsDiffer,          // number of steps, or which parameters move
  ValuesDiffer,         // values of parameters, buffers or gradients
  ModelDiffers,         // names, order, shapes, dtypes of the model
  ModesDiffer,          // a layer trains on some ranks and evaluates on others
  CollectiveDiffers,    // the ranks met in different collectives
  RankGone,             // a rank left or died
  RankBehind,           // a rank has not arrived
  Exception,            // an exception on a rank
  WrongScale,           // a communication hook does not give the mean, or a gradient carries a loss scaler's factor
  Overflow,             // finite before a communication hook, not after
  NonFinite,            // infinite or NaN on some rank before the reduction
  NormOutlier,          // one rank's gradients are of a different size
  UnevenBatches,        // ranks average over different numbers of samples
  SameBatches,          // all ranks compute the same gradients
  Slow,                 // one rank is late
  Wasteful,             // correct, but more expensive than necessary
  Unknown,              // a path exists, and backward did not take it
};
// "module_not_called", ...
const char* name(CauseKind kind) noexcept;

struct Cause {
  CauseKind kind = CauseKind::Unknown;
  std::string op;  // the operation that cut or dropped the path, "" when none
  Place place;
  std::string module;  // path of the module concerned, "" for the root
  std::string text;    // one sentence
  std::string note;    // more, for example where the parameter was last used; may be ""

  // Two parameters with the same cause are reported together.
  bool same_as(const Cause& other) const noexcept {
    return kind == other.kind && op == other.op && place == other.place && text == other.text;
  }
};

struct ParameterVerdict {
  std::string name;
  int64_t bytes = 0;
  std::vector<int> ready_ranks;
  std::vector<int> missing_ranks;
};

// Error: thrown. Warning: printed once and kept (the numbers may be wrong). Note: kept, nothing is
// wrong.
enum class Severity : uint8_t { Error, Warning, Note };
const char* name(Severity severity) noexcept;

struct Verdict {
  std::string kind;     // "unused_parameters", "rank_failed", ...: see docs/reference/verdicts.md
  std::string what;     // begins the message of a step's error, before names, ranks and line: "Not averaged"
  std::string message;  // what happened, to whom and where; below, why
  std::vector<ParameterVerdict> parameters;
  std::vector<int> ranks;  // where it went wrong
  Cause cause;
  std::string advice;  // what to do
  Severity severity = Severity::Error;
  uint64_t iteration = 0;  // number of the reduced backward; 0: outside of one
};
Verdict new_verdict(const char* kind, Severity severity, CauseKind cause, Place place = {});
// Sets the message: `what` and, on a second line, why: the text and the note of the cause.
void set_message(Verdict& verdict, const std::string& what);
// What to do, and how to learn more about a kind of Brigade's own.
std::string advice_in_words(const Verdict& verdict);
// The texts of the first kMostParagraphs verdicts: message and advice, which verdicts in a row may share.
std::string in_words(std::span<const Verdict> verdicts);
inline std::string in_words(const Verdict& verdict) { return in_words(std::span(&verdict, 1)); }
// The first line of the message, without its period.
std::string headline(const Verdict& verdict);

// Base of errors that carry verdicts: catch (const dist::Diagnosed& error).
class Diagnosed {
 public:
  explicit Diagnosed(std::vector<Verdict> verdicts) : verdicts_(std::move(verdicts)) {}
  virtual ~Diagnosed() = default;
  const std::vector<Verdict>& verdicts() const noexcept { return verdicts_; }

 private:
  std::vector<Verdict> verdicts_;
};

// Errors with more verdicts than this print the first ones; Diagnosed has all.
inline constexpr size_t kMostParagraphs = 8;
// Precedes the advice in a text.
inline constexpr const char* kDo = "\ndo:  ";

// See dist/errors/error_file.h.
void announce(const std::string& message, const std::vector<Verdict>& verdicts) noexcept;

template <class Base>
class DiagnosedAs : public Base, public Diagnosed {
 public:
  DiagnosedAs(const std::string& message, std::vector<Verdict> verdicts, std::source_location where = {})
      : Base(message), Diagnosed(std::move(verdicts)) {
    this->set_where(where);
    announce(message, this->verdicts());
  }
};

// Re-exported so that users can catch dist::TimeoutError.
using brigade::DistError;
using brigade::PeerError;
using brigade::TimeoutError;

// The error that every rank raises at the end of a backward whose gradients cannot be trusted. The
// same text on every rank.
class ReductionError : public DiagnosedAs<DistError> {
  using DiagnosedAs::DiagnosedAs;
};
// The ranks do not hold the same model, values or optimizer.
class ConsistencyError : public DiagnosedAs<DistError> {
  using DiagnosedAs::DiagnosedAs;
};
// The ranks met in different collectives. Nothing was exchanged; the group is unusable afterwards.
class CollectiveError : public DiagnosedAs<DistError> {
  using DiagnosedAs::DiagnosedAs;
};

// The first `most` parts with `separator` between them, then "and 298 more".
std::string first_of(std::span<const std::string> parts, size_t most, std::string_view separator);
// "0, 1 and 3"; of many ranks "0 to 5, 7 and 9 to 40".
std::string list_of(const std::vector<int>& ranks);
// "a.weight, a.bias and 3 more": the first `most` names.
std::string names_in_words(const std::vector<ParameterVerdict>& parameters, size_t most = 8);
ParameterVerdict about(const NamedParameter& parameter, std::vector<int> ready_ranks, std::vector<int> missing_ranks);
// "encoder.0" of "encoder.0.weight".
std::string module_of(const std::string& parameter);
// "640 B", "1.2 MiB"
std::string bytes_in_words(int64_t bytes);
// "rank 1", "ranks 0 and 2"
std::string ranks_in_words(const std::vector<int>& ranks);
// "rank 0 has 0.1, ranks 1 and 2 have 0.2" of "has 0.1" and twice "has 0.2"; at most the first eight texts.
std::string by_rank_in_words(std::span<const std::string> by_rank);
// "a.weight, a.bias (80 B)"
std::string parameters_in_words(const std::vector<ParameterVerdict>& parameters);
// What to do about a cause; `some_ranks_only` when other ranks used the parameter, `by_fabric` in the words of Fabric.
std::string advice_for(CauseKind kind, bool some_ranks_only, bool by_fabric = false);

}  // namespace brigade::dist
