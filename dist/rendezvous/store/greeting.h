// The handshake between a TCP store and a client: they agree on the job, and prove to each other that they know its
// secret, before any request.
//
//     client: kStoreMagic, "WORLD_SIZE\0RUN\0WHO\0NONCE"; no nonce: it has no secret
//     store:  kStoreMagic, "=" (welcome) when neither side has a secret, or "?NONCE" to request a proof
//     client: its proof
//     store:  "=" and its own proof
//
// In every version, length-prefixed strings follow the magic (socket.h). To refuse, the store answers "!" and the
// reason instead, and closes the connection. The nonces are new for each connection, so recorded traffic is of no use
// in another one. The client proves first: a stranger gets nothing from the store that would help to guess a weak
// secret.
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
// nullopt for a text that greeting_text does not produce.
std::optional<Greeting> read_greeting(std::string_view text);

enum class Prover { client, store };
// A proof that can only be computed with the secret.
std::string proof_of(Prover prover, std::string_view secret, std::string_view store_nonce,
                     std::string_view client_greeting);

// Why a store refuses a client, as text for both sides, and a remedy. "" when it does not.
struct Refusal {
  std::string reason;
  std::string advice;
};

// The two sides have different magics of the family.
Refusal other_version(std::string_view store_magic, std::string_view client_magic);
// Checked before the proof: `other` must name the run of `own`, and have a secret exactly when `own` has one. The
// refusal does not reveal the store's run to a stranger.
Refusal why_stranger(const StoreJob& own, const Greeting& other);
// For a client whose proof is wrong.
Refusal wrong_secret();
// Checked after the proof: whether the two agree on the world size.
Refusal why_refused(const StoreJob& own, const StoreJob& other);

}  // namespace brigade::dist
