// What the diagnosis says: for each group of parameters with one cause, who is concerned, why, and what to do.
#pragma once

#include <brigade/core/error.h>

#include <cstdint>
#include <string>
#include <vector>

namespace brigade::dist {

// Why a parameter never became ready on a rank.
enum class CauseKind : uint8_t {
  ModuleNotCalled,    // its module did not run since the last backward
  NotUsed,            // its module ran, but no operation took the parameter
  OutputDropped,      // used, but nothing it fed reached the root of backward
  Detached,           // the path was cut by detach()
  NoGrad,             // used under no_grad
  NotDifferentiable,  // the path went through an operation without a derivative
  ReadAsNumber,       // its value left the graph through item()
  Frozen,             // requires_grad was switched off after wrapping
  LossNotConnected,   // the root of backward does not depend on the module at all
  Unknown,            // the tape was off, or does not reach back far enough
};
// "module_not_called", ...
const char* name(CauseKind kind) noexcept;

struct Cause {
  CauseKind kind = CauseKind::Unknown;
  std::string op;  // the operation that cut or dropped the path, "" when none
  std::string file;
  uint32_t line = 0;   // 0 when not known
  std::string module;  // path of the module concerned, "" for the root
  std::string text;    // one sentence
  std::string note;    // more, for example where the parameter was last used; may be ""

  // Two parameters with the same cause are reported together.
  bool same_as(const Cause& other) const noexcept {
    return kind == other.kind && op == other.op && file == other.file && line == other.line && text == other.text;
  }
};

struct ParameterVerdict {
  std::string name;
  int64_t bytes = 0;
  std::vector<int> ready_ranks;
  std::vector<int> missing_ranks;
};

struct Verdict {
  std::string kind;     // "unused_parameters", "rank_failed", "backward_mismatch"
  std::string message;  // the paragraph that is printed
  std::vector<ParameterVerdict> parameters;
  std::vector<int> ranks;  // where it went wrong
  Cause cause;
  std::string advice;
};

// The error that every rank raises at the end of a backward whose gradients cannot be trusted. The same text on every
// rank.
class ReductionError : public DistError {
 public:
  ReductionError(const std::string& message, std::vector<Verdict> verdicts, std::source_location where)
      : DistError(message, where), verdicts_(std::move(verdicts)) {}
  const std::vector<Verdict>& verdicts() const noexcept { return verdicts_; }

 private:
  std::vector<Verdict> verdicts_;
};

// "0, 1 and 3"
std::string list_of(const std::vector<int>& ranks);
// "640 B", "1.2 MiB"
std::string bytes_in_words(int64_t bytes);
// What to do about a cause; `some_ranks_only` when other ranks used the parameter.
std::string advice_for(CauseKind kind, bool some_ranks_only);

}  // namespace brigade::dist
