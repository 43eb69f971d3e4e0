// Where the ranks of a run meet: the store that an init_method names.
#pragma once

#include <brigade/dist/rendezvous/launch/environment.h>
#include <brigade/dist/rendezvous/store.h>

#include <chrono>
#include <memory>
#include <string>

namespace brigade::dist {

// `method`: "env://" (what find_meeting_place says), "tcp://HOST:PORT", "file:///PATH", or "alone://"
// (a world of one: a port of its own on the loopback interface). Over TCP rank 0 hosts the server,
// unless the launcher does. Throws DistError for another method, and what the stores throw:
// TimeoutError when nobody answers in time.
std::shared_ptr<Store> open_store(const std::string& method, const Variables& variables, const LaunchedRank& launched,
                                  std::chrono::milliseconds timeout);

}  // namespace brigade::dist
