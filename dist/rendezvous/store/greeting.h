// The first words between a TCP store and who comes to it: they agree on the job, and prove to each
// other that they know its secret, before anything else is said.
//
//     client: kStoreMagic, "WORLD_SIZE\0RUN\0WHO\0NONCE"; no nonce: it has no secret
//     store:  kStoreMagic, "=" for welcome where both have no secret, "?NONCE" to ask for a proof
//     client: its proof
//     store:  "=" and its own proof
//
// What follows the magic are strings with their length in front (socket.h), in every version. In
// place of its answer the store says "!" and the reason of a refusal, and closes the connection.
// The nonces are new for each connection, so what was overheard is of no use in another. The client
// proves first: a stranger gets nothing from the store by which a weak secret could be guessed.
#pragma once

#include <brigade/dist/rendezvous/store.h>

#include <optional>
#include <string_view>

namespace brigade::dist {

constexpr std::string_view kStoreFamily = "brigade-store-";
constexpr std::string_view kStoreMagic = "brigade-store-3\n";
constexpr uint32_t kMostGreetingBytes = 1024;
constexpr uint32_t kProofBytes = 64;

struct Greeting {
  StoreJob job;  // without its secret
  std::string nonce;
};

std::string greeting_text(const StoreJob& job, std::string_view nonce = "");
// nullopt for what greeting_text does not write.
std::optional<Greeting> read_greeting(std::string_view text);

enum class Prover { client, store };
// What only those can make who know the secret.
std::string proof_of(Prover prover, std::string_view secret, std::string_view store_nonce,
                     std::string_view client_greeting);

// Why a store refuses somebody, in words for both sides, and what to do. "" when it does not.
struct Refusal {
  std::string reason;
  std::string advice;
};

// The two say different magics of the family.
Refusal other_version(std::string_view store_magic, std::string_view client_magic);
// Before a proof: whether `other` says that it is of the run of `own`, and has a secret when that
// has one. It does not tell the store's run: who does not know it is a stranger.
Refusal why_stranger(const StoreJob& own, const Greeting& other);
// Of a client whose proof is wrong.
Refusal wrong_secret();
// After the proof: whether the two agree on the rest.
Refusal why_refused(const StoreJob& own, const StoreJob& other);

}  // namespace brigade::dist
