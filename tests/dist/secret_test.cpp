#include <brigade/core/error.h>
#include <brigade/dist/rendezvous/secret.h>

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

namespace brigade::test::secret_test {
// RAII: the two variables and a folder for files, removed at the end.
class Place {
 public:
  Place() {
    std::string name = (std::filesystem::temp_directory_path() / "brigade-secret-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder_ = name;
    set("", "");
  }
  ~Place() {
    unsetenv("BRIGADE_SECRET");
    unsetenv("BRIGADE_SECRET_FILE");
    std::filesystem::remove_all(folder_);
  }
  void set(const std::string& secret, const std::string& file) const {
    setenv("BRIGADE_SECRET", secret.c_str(), 1);
    setenv("BRIGADE_SECRET_FILE", file.c_str(), 1);
  }
  std::string file(const std::string& text, mode_t mode = 0600) const {
    const std::string name = (folder_ / "secret").string();
    std::filesystem::remove(name);
    std::ofstream(name, std::ios::binary) << text;
    REQUIRE(chmod(name.c_str(), mode) == 0);
    return name;
  }

 private:
  std::filesystem::path folder_;
};

std::string refusal() {
  try {
    dist::job_secret();
  } catch (const Error& error) {
    return error.what();
  }
  return "taken";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("HMAC-SHA-256 is that of RFC 4231") {
  CHECK(dist::hmac(std::string(20, '\x0b'), "Hi There") ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(dist::hmac("Jefe", "what do ya want for nothing?") ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(dist::hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First") ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  CHECK(dist::same_proof("abc", "abc"));
  CHECK_FALSE(dist::same_proof("abc", "abd"));
  CHECK_FALSE(dist::same_proof("abc", "abcd"));
  CHECK_FALSE(dist::same_proof("", "a"));
}

TEST_CASE("random tokens are 64 hexadecimal digits that do not repeat") {
  const std::string token = dist::random_token();
  CHECK(token.size() == 64);
  CHECK(token.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(token != dist::random_token());
}

TEST_CASE("the job's secret comes from the environment, else from a file of its owner, else there is none") {
  const Place place;
  CHECK(dist::job_secret().empty());
  place.set("", place.file("the secret of a file\n"));
  CHECK(dist::job_secret() == "the secret of a file");
  place.set("", place.file("the secret of a file", 0400));
  CHECK(dist::job_secret() == "the secret of a file");
  place.set("that of the variable", "/no/such/file");
  CHECK(dist::job_secret() == "that of the variable");
  place.set(std::string(256, 'x'), "");
  CHECK(dist::job_secret() == std::string(256, 'x'));
  place.set("", place.file(std::string(256, 'x') + "\n"));
  CHECK(dist::job_secret() == std::string(256, 'x'));
}

TEST_CASE("a secret that is too short, too long or unprintable is refused, and not told") {
  const Place place;
  place.set("hunter2", "");
  CHECK_THROWS_AS(dist::job_secret(), DistError);
  CHECK(refusal() ==
        "the environment variable BRIGADE_SECRET must hold a secret of 16 to 256 characters, got 7; make one with: "
        "openssl rand -hex 32");
  for (const std::string& text : {std::string(""), std::string("\n"), std::string("hunter2"), std::string(15, 'x'),
                                  std::string(257, 'x'), std::string(5000, 'x')}) {
    place.set("", place.file(text));
    const std::string told = refusal();
    CHECK(has(told, "(BRIGADE_SECRET_FILE) must hold a secret of 16 to 256 characters, got"));
    CHECK_FALSE(has(told, "hunter2"));
  }
  for (const std::string& text :
       {std::string("a secret of two\nlines, hunter2"), std::string("zero\0 byte and hunter2", 22)}) {
    place.set("", place.file(text));
    const std::string told = refusal();
    CHECK(has(told, "must hold one line of printable ASCII characters"));
    CHECK_FALSE(has(told, "hunter2"));
  }
}

TEST_CASE("a file that others can read, a link, a folder, a pipe and a missing file are refused") {
  const Place place;
  for (const mode_t mode : {0640U, 0604U, 0620U, 0602U, 0644U}) {
    const std::string name = place.file("the secret of a file", mode);
    place.set("", name);
    CHECK(has(refusal(), "others could read or change the secret; set it with: chmod 600"));
  }
  const std::string name = place.file("the secret of a file");
  const std::string link = name + "-link";
  std::filesystem::create_symlink(name, link);
  place.set("", link);
  CHECK(has(refusal(), "is a link; name the file itself"));
  const std::string pipe = name + "-pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  place.set("", pipe);
  CHECK(has(refusal(), "is no regular file"));
  place.set("", std::filesystem::path(name).parent_path());
  CHECK(has(refusal(), "is no regular file"));
  place.set("", name + "-none");
  CHECK_THROWS_AS(dist::job_secret(), IoError);
  CHECK(has(refusal(), "cannot be opened: No such file or directory"));
}

TEST_CASE("a file of another user is refused") {
  if (geteuid() != 0) {
    MESSAGE("SKIPPED: only root can make a file of a second user");
    return;
  }
  const Place place;
  const std::string name = place.file("the secret of a file");
  REQUIRE(chown(name.c_str(), 12345, 12345) == 0);
  place.set("", name);
  CHECK(has(refusal(), "belongs to user 12345, and this process to user 0"));
}

}  // namespace brigade::test::secret_test
