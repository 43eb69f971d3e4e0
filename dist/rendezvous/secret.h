// The secret of a job: what its ranks know and strangers do not, and how they prove it without
// telling it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace brigade::dist {

// The secret of this process's job: the variable BRIGADE_SECRET (`brigade run` sets it for its
// ranks), else the line in the file that BRIGADE_SECRET_FILE names, else "": the job has none.
// Throws DistError, or IoError where a file is concerned; neither tells the secret. It has 16 to
// 256 printable characters; the file is a regular one of this user, no link, and nobody else may
// read or write it.
std::string job_secret();

inline constexpr size_t kTokenBytes = 64;
// 32 random bytes from the kernel, in hexadecimal: a secret, or a number that is used once. Throws
// DistError when there are none.
std::string random_token();

// HMAC-SHA-256 (RFC 2104) of `text` under `key`, in hexadecimal.
std::string hmac(std::string_view key, std::string_view text);
// Compares in a time that does not depend on where the texts differ.
bool same_proof(std::string_view a, std::string_view b);

}  // namespace brigade::dist
