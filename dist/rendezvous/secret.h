// The secret of a job, which its ranks share, and proofs that a process knows it without revealing it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace brigade::dist {

// The secret of this process's job: the variable BRIGADE_SECRET (`brigade run` sets it for its ranks), else the line in
// the file that BRIGADE_SECRET_FILE names, else "": the job has none. The secret has 16 to 256 printable characters;
// the file must be a regular file of this user, not a link, and inaccessible to other users. Throws DistError, or
// IoError for the file; neither message contains the secret.
std::string job_secret();

inline constexpr size_t kTokenBytes = 64;
// 32 random bytes from the kernel, in hexadecimal: a secret or a nonce. Throws DistError when the kernel provides none.
std::string random_token();

// HMAC-SHA-256 (RFC 2104) of `text` under `key`, in hexadecimal.
std::string hmac(std::string_view key, std::string_view text);
// Compares in constant time, independent of where the texts differ.
bool same_proof(std::string_view a, std::string_view b);

}  // namespace brigade::dist
