// A reduced backward as advice sees it (advice.h): what all ranks have read, what this rank saw,
// and the way to ask the others.
#pragma once

#include <brigade/dist/diagnosis/moment.h>
#include <brigade/dist/errors/named_parameter.h>
#include <brigade/dist/timeline/timeline.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace brigade::dist {

// What the reduced payloads say about a backward as a whole.
struct Outcome {
  std::vector<int> users;  // per parameter: ranks that used it
  int present = 0;         // ranks whose backward reached a parameter
  int failed = 0;          // ranks whose backward failed
  int joined = 0;          // ranks that only send zeros
  int changed = 0;         // ranks whose graph changed (static_graph)
  int non_finite = 0;      // ranks with an infinite or NaN gradient
  bool same_round = true;
  // Seen from means and variances, which rounding blurs: worth a look.
  bool late = false;             // one rank is much later than the others
  bool outlier = false;          // one rank's gradients are much larger
  bool uneven = false;           // batches of different sizes
  bool uneven_gathered = false;  // different numbers of backwards in the sums
  bool uneven_factors = false;   // losses that were multiplied by different numbers
  size_t alike = 0;              // buckets in which the gradients of all ranks seem the same, to the last bit
  std::vector<Verdict> hooks;    // what the hook got wrong
};

// What this rank has seen of numbers that are not finite.
struct NonFinite {
  std::vector<uint32_t> parameters;
  std::vector<Tensor> device_losses;  // not looked at, since that would wait for the device
  bool loss = false;
  Cause cause;

  // `where`: of the backward.
  void blame_loss(SourceLocation where);
};

// The numbers that a loss was multiplied by last, and what came before them.
struct LossFactor {
  double factor = 1;
  Place at;        // of the latest of them; no line: there was none
  std::string of;  // the operation that made what was multiplied
  Place of_at;
  int64_t rows = 0;  // samples in the batch, 0 when not known
};

// Backwards that this rank's gradients still hold, and the latest of them.
struct KeptBackwards {
  int64_t count = 0;
  Place at;
};

// Its gradients are sound and at their places.
class FinishedBackward {
 public:
  virtual ~FinishedBackward() = default;

  // --- Alike on every rank

  virtual Moment moment() const = 0;  // the line of the call is this rank's
  virtual const Outcome& outcome() const = 0;
  // Those that the reducer manages. Their positions here are what "per parameter" counts.
  virtual std::span<const NamedParameter> parameters() const = 0;
  virtual bool find_unused_parameters() const = 0;  // the option
  virtual size_t buckets() const = 0;
  // Positions of the parameters in a bucket.
  virtual std::span<const uint32_t> bucket(size_t index) const = 0;

  // --- This rank's own

  virtual int rank() const = 0;
  virtual int64_t rows() const = 0;      // samples in its batch, 0 when not known
  virtual int64_t gathered() const = 0;  // backwards in the sums: this one, those before
  // Of those, averaged before, and neither cleared since nor used by a step.
  virtual KeptBackwards kept() const { return {}; }
  virtual const LossFactor& loss_factor() const = 0;            // of this backward's own loss
  virtual std::span<const double> sums_of_squares() const = 0;  // of its gradients, per parameter; 0 without one
  virtual const NonFinite& non_finite() const = 0;
  // The backward that both are about, and `non_finite` and `outlier` of the outcome. Over nccl that
  // is the one before, since nobody waits for the numbers of a device.
  virtual Moment moment_of_numbers() const { return moment(); }
  virtual const RoundEvents& events() const = 0;

  // Every rank's text, by rank: a collective. `about` says of what, and stands in the message when
  // the ranks do not all ask the same. Throws what the group throws.
  virtual std::vector<std::string> exchange(const std::string& mine, const char* about) = 0;
};

}  // namespace brigade::dist
