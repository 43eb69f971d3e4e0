// Reads the job's secret from the environment or a file of its owner; computes proofs with OpenSSL.
#include <brigade/dist/rendezvous/secret.h>

#include <brigade/core/error.h>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace brigade::dist {
namespace {

constexpr size_t kLeastSecretBytes = 16;
constexpr size_t kMostSecretBytes = 256;

std::string bytes_in_hexadecimal(std::span<const unsigned char> bytes) {
  std::string text;
  for (const unsigned char byte : bytes)
    text += fmt::format("{:02x}", byte);
  return text;
}

// Why `secret` is invalid, without revealing it; "" when it is valid.
std::string why_no_secret(const std::string& secret) {
  if (secret.size() < kLeastSecretBytes || secret.size() > kMostSecretBytes)
    return fmt::format("must hold a secret of {} to {} characters, got {}; make one with: openssl rand -hex 32",
                       kLeastSecretBytes, kMostSecretBytes,
                       secret.size() > kMostSecretBytes ? "more" : std::to_string(secret.size()));
  if (std::any_of(secret.begin(), secret.end(), [](char c) { return c < ' ' || c > '~'; }))
    return "must hold one line of printable ASCII characters; make a secret with: openssl rand -hex 32";
  return "";
}

// A user who can read the file knows the secret, and one who can write it can choose the secret.
void check_secret_file(int file, const std::string& source) {
  struct stat status {};
  if (fstat(file, &status) != 0) throw IoError("{} cannot be read: {}", source, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw IoError("{} is no regular file", source);
  if (status.st_uid != geteuid())
    throw IoError("{} belongs to user {}, and this process to user {}; give the secret in a file of your own", source,
                  status.st_uid, geteuid());
  if ((status.st_mode & 077) != 0)
    throw IoError("{} has mode {}: others could read or change the secret; set it with: chmod 600", source,
                  fmt::format("{:03o}", status.st_mode & 0777));
}

std::string read_secret_file(const std::string& name) {
  const std::string source = fmt::format("the file '{}' (BRIGADE_SECRET_FILE)", name);
  // O_NONBLOCK: open() of a pipe would block until a writer opens it.
  const int file = open(name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0 && errno == ELOOP) throw IoError("{} is a link; name the file itself", source);
  if (file < 0) throw IoError("{} cannot be opened: {}", source, std::strerror(errno));
  struct Close {
    int fd;
    ~Close() { close(fd); }
  } closed{file};
  check_secret_file(file, source);
  std::array<char, kMostSecretBytes + 2> bytes{};  // a newline, and one more to detect a secret that is too long
  const ssize_t got = read(file, bytes.data(), bytes.size());
  if (got < 0) throw IoError("{} cannot be read: {}", source, std::strerror(errno));
  std::string secret(bytes.data(), static_cast<size_t>(got));
  if (secret.ends_with('\n')) secret.pop_back();
  const std::string wrong = why_no_secret(secret);
  if (!wrong.empty()) throw IoError("{} {}", source, wrong);
  return secret;
}

}  // namespace

std::string job_secret() {
  const char* secret = std::getenv("BRIGADE_SECRET");
  if (secret && *secret) {
    const std::string wrong = why_no_secret(secret);
    if (!wrong.empty()) throw DistError("the environment variable BRIGADE_SECRET {}", wrong);
    return secret;
  }
  const char* file = std::getenv("BRIGADE_SECRET_FILE");
  return file && *file ? read_secret_file(file) : "";
}

std::string random_token() {
  std::array<unsigned char, 32> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw DistError("the kernel gives no random bytes: {}", std::strerror(errno));
  return bytes_in_hexadecimal(bytes);
}

std::string hmac(std::string_view key, std::string_view text) {
  // OpenSSL's cleanup at exit would run before the destructor of a group in a static object, whose store still needs
  // OpenSSL.
  [[maybe_unused]] static const int once = OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned int length = 0;
  if (!HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
            text.size(), bytes.data(), &length))
    throw DistError("OpenSSL cannot compute an HMAC with SHA-256");
  return bytes_in_hexadecimal({bytes.data(), length});
}

bool same_proof(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace brigade::dist
