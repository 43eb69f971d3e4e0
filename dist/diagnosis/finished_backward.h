// A reduced backward as advice sees it (advice.h): data that is the same on every rank, this rank's
// own observations, and a way to exchange texts with the other ranks.
#pragma once

#include <brigade/dist/diagnosis/numbers.h>
#include <brigade/dist/diagnosis/report.h>
#include <brigade/dist/errors/named_parameter.h>
#include <brigade/dist/reducer/past.h>
#include <brigade/dist/timeline/timeline.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace brigade::dist {

// A backward whose gradients are sound and in place.
class FinishedBackward {
 public:
  virtual ~FinishedBackward() = default;

  // --- The same on every rank

  virtual Moment moment() const = 0;  // the line of the call is this rank's
  virtual const Outcome& outcome() const = 0;
  virtual const Measured& measured() const = 0;
  // The parameters that the reducer manages. "Per parameter" refers to their positions here.
  virtual std::span<const NamedParameter> parameters() const = 0;
  virtual bool find_unused_parameters() const = 0;  // the option
  virtual size_t buckets() const = 0;
  // Positions of the parameters in a bucket.
  virtual std::span<const uint32_t> bucket(size_t index) const = 0;

  // --- This rank's own

  virtual int rank() const = 0;
  virtual int64_t rows() const = 0;                             // samples in its batch, 0 when not known
  virtual std::span<const double> sums_of_squares() const = 0;  // of its gradients, per parameter; 0 without a gradient
  virtual const NonFinite& non_finite() const = 0;
  // The backward that sums_of_squares(), non_finite(), and `non_finite` and `outlier` of measured()
  // refer to. With nccl it is the previous one, since the host does not wait for the device's
  // numbers.
  virtual Moment moment_of_numbers() const { return moment(); }
  virtual const RoundEvents& events() const = 0;

  // Gathers the texts of all ranks, by rank: a collective. `about` is the topic; the error message
  // names it if the ranks ask about different things. Throws what the group throws.
  virtual std::vector<std::string> exchange(const std::string& mine, const char* about) = 0;
};

}  // namespace brigade::dist
