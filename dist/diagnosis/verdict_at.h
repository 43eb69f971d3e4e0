// The fields of a verdict that follow from the backward that it is about.
#pragma once

#include <brigade/dist/errors/verdict.h>
#include <brigade/dist/reducer/past.h>

namespace brigade::dist {

// A verdict at the line of that backward, without a message yet.
Verdict verdict_at(const Moment& moment, const char* kind, Severity severity, CauseKind cause);

}  // namespace brigade::dist
