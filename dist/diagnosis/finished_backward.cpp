// NonFinite: attributes non-finite numbers to the loss.
#include <brigade/dist/diagnosis/finished_backward.h>

#include <fmt/format.h>

namespace brigade::dist {

void NonFinite::blame_loss(SourceLocation where) {
  cause = {};
  cause.kind = CauseKind::NonFinite;
  cause.place = where;
  cause.text = fmt::format("the loss of the backward at {} is not finite", to_string(where));
}

}  // namespace brigade::dist
