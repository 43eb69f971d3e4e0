// Writes, reads and compares the greetings of the two sides of a store, and computes their proofs.
#include <brigade/dist/rendezvous/secret.h>
#include <brigade/dist/rendezvous/store/greeting.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace brigade::dist {
namespace {

// Names come from environment variables and are printed, so their length is limited and control characters are
// replaced.
constexpr size_t kMostNameBytes = 256;

std::string plain(std::string_view name) {
  std::string text(name.substr(0, kMostNameBytes));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

constexpr const char* kOwnPorts = "give each job a port of its own, and all its ranks the same WORLD_SIZE";
constexpr const char* kSameSecret =
    "give all ranks and launchers of a job the same secret, in BRIGADE_SECRET or BRIGADE_SECRET_FILE";

}  // namespace

std::string greeting_text(const StoreJob& job, std::string_view nonce) {
  return std::to_string(job.world_size) + '\0' + plain(job.run) + '\0' + plain(job.who) + '\0' + std::string(nonce);
}

std::optional<Greeting> read_greeting(std::string_view text) {
  std::array<std::string_view, 4> fields;
  for (size_t i = 0; i < fields.size(); ++i) {
    const size_t zero = text.find('\0');
    if ((zero == std::string_view::npos) != (i + 1 == fields.size())) return std::nullopt;
    fields[i] = text.substr(0, zero);
    text.remove_prefix(std::min(fields[i].size() + 1, text.size()));
  }
  Greeting greeting{{.run = std::string(fields[1]), .who = std::string(fields[2])}, std::string(fields[3])};
  StoreJob& job = greeting.job;
  const char* end = fields[0].data() + fields[0].size();
  const auto [rest, error] = std::from_chars(fields[0].data(), end, job.world_size);
  const bool right = error == std::errc() && rest == end && job.world_size >= 0 && job.run == plain(job.run) &&
                     job.who == plain(job.who) && (greeting.nonce.empty() || greeting.nonce.size() == kTokenBytes);
  return right ? std::optional(greeting) : std::nullopt;
}

std::string proof_of(Prover prover, std::string_view secret, std::string_view store_nonce,
                     std::string_view client_greeting) {
  // The greeting comes last, so its end needs no delimiter.
  return hmac(secret, fmt::format("{}{} {} {}", kStoreMagic, prover == Prover::client ? "client" : "store", store_nonce,
                                  client_greeting));
}

Refusal other_version(std::string_view store_magic, std::string_view client_magic) {
  const auto name = [](std::string_view magic) { return plain(magic.substr(0, magic.find('\n'))); };
  return {
      fmt::format("it speaks {}, and this one {}: all ranks and launchers of a job need the same version of Brigade",
                  name(store_magic), name(client_magic)),
      "start all ranks and launchers of a job with the same version of Brigade"};
}

Refusal why_stranger(const StoreJob& own, const Greeting& other) {
  if (plain(own.run) != other.job.run)
    return {fmt::format("it belongs to another run than {}: two jobs use the same port; give each its own with "
                        "--master-port or MASTER_PORT",
                        other.job.run.empty() ? "this one, which has no name" : "'" + other.job.run + "'"),
            kOwnPorts};
  if (own.secret.empty() == other.nonce.empty()) return {};
  return {own.secret.empty() ? "its job has no secret, and this one has brought one: two jobs use the same port, or "
                               "BRIGADE_SECRET (or BRIGADE_SECRET_FILE) is not set everywhere"
                             : "its job has a secret, and this one has brought none: two jobs use the same port, or "
                               "BRIGADE_SECRET (or BRIGADE_SECRET_FILE) is not set everywhere",
          kSameSecret};
}

Refusal wrong_secret() {
  return {
      "its job has another secret: two jobs use the same port, or BRIGADE_SECRET (or BRIGADE_SECRET_FILE) differs "
      "between ranks or launchers",
      kSameSecret};
}

Refusal why_refused(const StoreJob& own, const StoreJob& other) {
  if (own.world_size > 0 && other.world_size > 0 && own.world_size != other.world_size)
    return {fmt::format(
                "its job has {} ranks, and this one {}: two jobs use the same port, or WORLD_SIZE differs between the "
                "ranks",
                own.world_size, other.world_size),
            kOwnPorts};
  return {};
}

}  // namespace brigade::dist
