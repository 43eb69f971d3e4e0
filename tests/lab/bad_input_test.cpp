// User mistakes: a clear error that names the problem and its place, a nonzero status, no hang, nothing left behind.
#include "program.h"

#include <core/error_of.h>
#include <core/temporary_folder.h>

#include <brigade/dist/rendezvous/store.h>
#include <brigade/lab/data_path.h>

#include <doctest/doctest.h>
#include <zlib.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include <dirent.h>
#include <unistd.h>

namespace brigade::test::bad_input_test {

using test::contains;
using test::run_program;

namespace fs = std::filesystem;

struct Folder {
  fs::path path = fs::temp_directory_path() / ("brigade-bad-" + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};

void write_gzip(const fs::path& path, const std::string& text) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
}

std::string line(const std::string& last) {
  std::string text;
  for (int i = 0; i < 63; ++i)
    text += "1,";
  return text + last;
}

// Running processes other than this one whose /proc file `file` ("cmdline", "environ") contains `part`.
std::set<std::string> processes_with(const std::string& part, const char* file = "cmdline") {
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream in(entry.path() / file);
    std::string words;
    for (std::string word; std::getline(in, word, '\0');)
      words += word + " ";  // empty if the process has exited since
    if (words.find(part) != std::string::npos && name != std::to_string(getpid())) found.insert(name);
  }
  return found;
}

TEST_CASE("damaged data files are named with the line or the place of the damage") {
  const Folder folder;
  const fs::path file = folder.path / "digits.csv.gz";
  struct Row {
    std::string text;
    const char* expected;
  };
  for (const Row& row : std::vector<Row>{{line("2,7\n") + "1,2,3\n", "line 2: ends after column 3"},
                                         {line("2,12\n"), "line 1: column 65 is 12"},
                                         {line("17,3\n"), "line 1: column 64 is 17"},
                                         {line("x,3\n"), "line 1: has no number in column 64"},
                                         {line("2,7,8\n"), "line 1: has more than 65 columns"},
                                         {"", "holds no examples"}}) {
    write_gzip(file, row.text);
    std::string text;
    try {
      lab::load_digits(file);
    } catch (const IoError& error) {
      text = error.what();
    }
    CAPTURE(text);
    CHECK(contains(text, row.expected));
    CHECK(contains(text, file.string()));
  }
  // A gzip stream that is cut off in the middle, read by the program.
  fs::copy_file(fs::path(BRIGADE_SOURCE_DIR) / "lab/data/digits.csv.gz", file, fs::copy_options::overwrite_existing);
  fs::resize_file(file, 30000);
  const test::Outcome outcome = run_program("train digits --quiet", "BRIGADE_DATA_DIR=" + folder.path.string());
  CHECK(outcome.status != 0);
  CHECK(contains(outcome.output, "digits.csv.gz is damaged or truncated: unexpected end of file"));
  CHECK(outcome.seconds < 20);
  std::ofstream(file) << "plain text\n";
  CHECK(contains(run_program("train digits --quiet", "BRIGADE_DATA_DIR=" + folder.path.string()).output,
                 "is not a gzip file"));
  CHECK(contains(run_program("train digits --quiet", "BRIGADE_DATA_DIR=/nowhere").output,
                 "cannot find the digits data; looked for /nowhere/digits.csv.gz"));
}

TEST_CASE("brigade run: exit status, last words, forwarded signals, nothing left over") {
  CHECK(run_program("run -n 2 -- sh -c 'echo out of $RANK of $WORLD_SIZE'").output.find("[rank 1] out of 1 of 2\n") !=
        std::string::npos);
  const test::Outcome failed =
      run_program("run -n 3 -- sh -c 'if [ $RANK = 1 ]; then echo something broke >&2; exit 7; fi; sleep 97.125'");
  CHECK(failed.status == 7);
  CHECK(contains(failed.output, "rank 1 exited with status 7 first; its last words:\nsomething broke"));
  CHECK(failed.seconds < 10);
  CHECK(processes_with("97.125").empty());
  const test::Outcome killed = run_program("run -n 2 -- sh -c 'if [ $RANK = 0 ]; then kill -9 $$; fi; sleep 98.125'");
  CHECK(killed.status == 128 + SIGKILL);
  CHECK(contains(killed.output, "rank 0 was ended by signal 9"));
  CHECK(run_program("run -n 2 /no/such/program").status == 3);
  CHECK(contains(run_program("run -n 2 /no/such/program").output, "cannot start '/no/such/program'"));
  CHECK(run_program("run --no-prefix -n 2 -- true").status == 0);
  // A restart gives the ranks another chance and passes them the restart count.
  CHECK(run_program("run -n 2 --max-restarts 1 -- sh -c 'exit $((1 - TORCHELASTIC_RESTART_COUNT))'").status == 0);
  // Ctrl-C reaches the ranks; it is sent once both ranks wait for it.
  const Folder folder;
  const std::string ready = (folder.path / "ready-").string();
  const test::Outcome interrupted =
      run_program("run -n 2 -- sh -c 'trap \"echo caught; exit 3\" INT; touch " + ready +
                  "$RANK; if [ $RANK = 0 ]; then " + "while [ ! -e " + ready +
                  "1 ]; do sleep 0.05; done; kill -INT $(ps -o ppid= -p $$); fi; " + "while true; do sleep 0.1; done'");
  CHECK(contains(interrupted.output, "caught"));
  CHECK(interrupted.status == 3);
}

TEST_CASE("a port in use is named") {
  dist::TcpStoreServer server("127.0.0.1", 0);
  const std::string port = std::to_string(server.port());
  const test::Outcome outcome = run_program("run -n 2 --master-port " + port + " -- true");
  CHECK(outcome.status == 1);
  CHECK(contains(outcome.output, "cannot listen on port " + port + " of 127.0.0.1: it is already in use"));
}

TEST_CASE("SIGKILL of a rank in the middle of a training ends the job, names the rank, and leaves nothing behind") {
  for (const std::string backend : {"shm", "gloo"}) {
    CAPTURE(backend);
    const auto shared_before = std::distance(fs::directory_iterator("/dev/shm"), fs::directory_iterator());
    // Other tests may train at the same time: this job is identified by its temporary folder.
    const Folder folder;
    const std::string mark = "TMPDIR=" + folder.path.string();
    const auto ranks_of_job = [&] {
      std::set<std::string> ranks = processes_with("rank-job");
      const std::set<std::string> marked = processes_with(mark, "environ");
      std::erase_if(ranks, [&](const std::string& process) { return !marked.contains(process); });
      return ranks;
    };
    const test::TemporaryFolder beside;
    const std::string metrics = beside / "metrics";
    std::thread killer([&] {
      // Wait until training has run a few steps.
      const auto latest = std::chrono::steady_clock::now() + std::chrono::minutes(3);
      while (std::chrono::steady_clock::now() < latest) {
        if (fs::exists(metrics) && fs::file_size(metrics) > 200) {
          if (const auto ranks = ranks_of_job(); !ranks.empty()) kill(std::stoi(*ranks.rbegin()), SIGKILL);
          return;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    });
    const test::Outcome outcome =
        run_program("train digits --quiet --epochs 20000 --metrics " + metrics + " --backend " + backend, mark);
    killer.join();
    CAPTURE(outcome.output);
    CHECK(outcome.status != 0);
    CHECK(outcome.status != 124);
    CHECK((contains(outcome.output, "signal 9") || contains(outcome.output, "died")));
    CHECK(contains(outcome.output, "rank "));
    CHECK(processes_with(mark, "environ").empty());
    CHECK(std::distance(fs::directory_iterator("/dev/shm"), fs::directory_iterator()) == shared_before);
    CHECK(fs::is_empty(folder.path));
  }
}

TEST_CASE("a file that unpacks to far more than the digits is refused before it fills the memory") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "bomb.csv.gz";
  write_gzip(path, std::string(80 << 20, '0'));
  CHECK(fs::file_size(path) < 200'000);
  CHECK_THROWS_AS(lab::read_digits_file(path), IoError);
  CHECK(
      test::error_of([&] { lab::read_digits_file(path); }) ==
      path +
          " unpacks to more than 64 MiB; expected digits.csv.gz, a gzip-compressed CSV file of 0.3 MiB when unpacked");
}

}  // namespace brigade::test::bad_input_test
