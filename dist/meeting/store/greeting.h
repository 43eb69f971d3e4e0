// The first words between a TCP store and who comes to it: they agree on the job before anything
// else is said.
//
// The client sends kStoreMagic and one string "WORLD_SIZE\0RUN\0WHO"; the store answers kStoreMagic
// and one string, "" for welcome or the reason of a refusal, after which it closes the connection.
#pragma once

#include <brigade/dist/meeting/store.h>

#include <optional>
#include <string_view>

namespace brigade::dist {

constexpr std::string_view kStoreMagic = "brigade-store-2\n";
constexpr uint32_t kMostGreetingBytes = 1024;

std::string greeting_text(const StoreJob& job);
// nullopt for what greeting_text does not write.
std::optional<StoreJob> read_greeting(std::string_view text);

// The reason for which a store of `own` refuses `other`, in words for the client, "" when the two
// agree. It does not tell the store's run: who does not know it is a stranger.
std::string why_refused(const StoreJob& own, const StoreJob& other);

}  // namespace brigade::dist
