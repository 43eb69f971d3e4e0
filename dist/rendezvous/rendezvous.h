// Opens the store that an init_method names, in which the ranks of a run meet.
#pragma once

#include <brigade/dist/rendezvous/launch/environment.h>
#include <brigade/dist/rendezvous/store.h>

#include <chrono>
#include <memory>
#include <string>

namespace brigade::dist {

// `method`: "env://" (see find_meeting_place), "tcp://HOST:PORT", "file:///PATH", or "alone://" (a world of one: a free
// port on the loopback interface). Over TCP rank 0 hosts the server, unless the launcher does. Throws DistError for
// another method, and the errors of the stores: TimeoutError when no server answers in time.
std::shared_ptr<Store> open_store(const std::string& method, const Variables& variables, const LaunchedRank& launched,
                                  std::chrono::milliseconds timeout);

}  // namespace brigade::dist
