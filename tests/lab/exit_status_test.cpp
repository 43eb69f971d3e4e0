// The exit status of every command (docs/cli.md): 2 for wrong usage, 3 for anything missing, reported before any work
// starts.
#include "program.h"

#include <brigade/lab/recipes/recipe.h>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace brigade::test::exit_status_test {

using test::contains;

namespace fs = std::filesystem;

struct Row {
  std::string arguments;
  std::string expected;  // a part of the message
  std::string environment = "";
};

void check_rows(const std::vector<Row>& rows, int status) {
  for (const Row& row : rows) {
    CAPTURE(row.arguments);
    CAPTURE(row.environment);
    const test::Streams found = test::run_program_apart(row.arguments, row.environment, 60);
    CAPTURE(found.errors);
    CHECK(found.status == status);
    CHECK(found.output == "");
    CHECK_MESSAGE(contains(found.errors, row.expected), row.expected);
  }
}

struct Folder {
  fs::path path = fs::temp_directory_path() / ("brigade-status-" + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return (path / name).string();
  }
};

TEST_CASE("status 2: a command, a name or a number that makes no sense") {
  const Folder folder;
  check_rows(
      {
          {"", "A subcommand is required"},
          {"fly", "brigade: unknown command 'fly'; the nearest is "},
          {"--nope", "brigade: unknown option --nope; the nearest is --"},
          {"demo --epochs 0", "--epochs"},
          {"demo --backend mpi", "unknown backend 'mpi'"},
          {"run", "-n"},
          {"run -n 0 true", "-n"},
          {"run -n two true", "-n"},
          {"run -n 2", "command"},
          {"run -n 2 --meeting-timeout nan true", "expected a number from 0.1 to 86400, got nan"},
          {"run -n 2 --max-restarts -1 true", "--max-restarts"},
          {"run -n 2 --master-port 70000 true", "--master-port"},
          {"train", "train: name a recipe (" + lab::recipe_names() + "); --list shows them"},
          {"train digits --form best", "the recipe digits has no form 'best'; its forms are default"},
          {"train gan --form best", "the recipe gan has no form 'best'; its forms are expect, toggle, failing"},
          {"train gan --form expect --compare", "--compare"},
          {"train gan --compare --metrics file.jsonl", "--compare runs all forms, and --metrics is for one"},
          {"train gan --compare --resume file", "--compare runs all forms, and --resume is for one"},
          {"train gan --metrics /no-such-folder/file.jsonl", "cannot write /no-such-folder/file.jsonl"},
          {"train digits --steps 0", "--steps"},
          {"train digits --picture digits.png", "the recipe digits makes no pictures"},
          {"train mnist", "unknown recipe 'mnist'; known are " + lab::recipe_names()},
          {"train digits --strategy fsdp", "unknown strategy 'fsdp'; known are ddp, ddp_find_unused_parameters_true"},
          {"train digits --backend mpi", "unknown backend 'mpi'; known are shm"},
          {"train digits --precision 8-true", "unknown precision '8-true'; known are 32-true, 16-mixed, bf16-mixed"},
          {"train digits --device tpu", "unknown device 'tpu'; known are auto, cpu, cuda and cuda:N"},
          {"train digits --device cuda:x", "unknown device 'cuda:x'"},
          {"train digits --ranks 0", "--ranks"},
          {"train digits --ranks -2", "--ranks"},
          {"train digits --ranks 3", "the global batch of 64 cannot be shared evenly by 3 ranks"},
          {"train digits --batch 0", "--batch"},
          {"train digits --quiet --batch 131072", "the global batch of 131072 is larger than the 1438 examples"},
          {"train digits --epochs 0", "--epochs"},
          {"train digits --epochs nine", "--epochs"},
          {"train digits --epochs 99999999999", "--epochs"},
          {"train digits --lr nan", "expected a number from 0 to 1000000, got nan"},
          {"train digits --lr -1", "--lr"},
          {"train digits --timeout nan", "--timeout"},
          {"train digits --seed -1", "--seed"},
          {"train digits --nope", "--nope"},
          {"train digits --trace -", "cannot write -: a file is expected here"},
          {"train digits --trace /no-such-folder/file.json", "cannot write /no-such-folder/file.json"},
          {"train digits --json /no-such-folder/file.json", "cannot write /no-such-folder/file.json"},
          {"train digits --json " + folder.path.string(), "cannot write " + folder.path.string()},
          {"diagnose", "name at least one fault"},
          {"diagnose NO-99", "unknown fault 'NO-99'; the nearest are COL-19"},
          {"diagnose detach_betwen_gan_halfs", "the nearest are detach_between_gan_halves"},
          {"diagnose UNU-01 --ranks 1", "--ranks"},
          {"diagnose UNU-01 --backend mpi", "unknown backend 'mpi'"},
          {"diagnose UNU-01 --bucket-mb nan", "--bucket-mb"},
          {"diagnose UNU-01 --bucket-mb 0", "--bucket-mb"},
          {"diagnose --list --json /no-such-folder/file.json", "cannot write /no-such-folder/file.json"},
          {"check", "give either --all or a file"},
          {"check --all file.safetensors", "give either --all or a file"},
          {"check --all --op gelu", "--model and --op are for a file"},
          {"check file.safetensors --op gelu --model mlp", "give either --model or --op"},
          {"check --all --dtype half", "unknown dtype 'half'; known are float64, float32"},
          {"check --all --device tpu", "unknown device 'tpu'"},
          {"check --all --only nothing-like-this", "no case is in 'nothing-like-this'"},
          {"check file.safetensors --bound nan", "--bound"},
          {"check --all --json /no-such-folder/file.json", "cannot write /no-such-folder/file.json"},
          {"explain", "what"},
          {"doctor --amp nonsense", "nonsense"},
          {"explain mnist",
           "'mnist' is neither a recipe (" + lab::recipe_names() + "), nor a kind of verdict, nor a file"},
          {"explain digits --bucket-mb nan", "--bucket-mb"},
          {"explain digits --ranks 0", "--ranks"},
          {"explain digits --backend mpi", "unknown backend 'mpi'"},
          {"explain digits --trace /no-such-folder/file.json", "cannot write /no-such-folder/file.json"},
          {"explain " + folder.file("trace.json", "{}"), "is neither a trace of Brigade"},
          {"bench", "A subcommand is required"},
          {"bench nothing", "brigade bench: unknown command 'nothing'; the nearest is "},
          {"bench allreduce --dtype half", "unknown dtype 'half'; known are float64, float32"},
          {"bench allreduce --op mean", "expected one of sum, avg, max, min, got 'mean'"},
          {"bench allreduce --op avg --dtype int32", "--op avg is for floating dtypes, got --dtype int32"},
          {"bench allreduce --backend mpi", "unknown backend 'mpi'"},
          {"bench allreduce --ranks -1", "--ranks"},
          {"bench allreduce --rounds 0", "--rounds"},
          {"bench allreduce --sizes 3parsec", "a size is a whole number above 0 with K, M, G"},
          {"bench allreduce --sizes 64K-4K", "a range of sizes goes from the smaller to the larger, got '64K-4K'"},
          {"bench allreduce --sizes 999999999999G", "is more than 64 bits hold"},
          {"bench allreduce --sizes 9000000G", "times as much memory"},
          {"bench allreduce --sizes 4K-64K:x1", "behind the colon of a range stands x and a factor of at least 2"},
          {"bench allreduce --factor 1", "--factor"},
          {"bench allreduce --noise 0", "--noise"},
          {"bench allreduce --rounds 9-5",
           "rounds are a number from 1 to 1000000, or a range such as 5-200, got '9-5'"},
          {"bench allreduce --family bandwith", "expected one of bandwidth, latency, overlap, got 'bandwith'"},
          {"bench allreduce --in-flight 0", "--in-flight"},
          {"bench collectives --collectives all_to_none", "expected one of all_gather, all_reduce, barrier, broadcast"},
          {"bench allreduce --plot picture.png", "expected a file that ends in .svg, got 'picture.png'"},
          {"bench allreduce --baseline " + folder.file("other.json", "{\"results\": []}"), "other.json has none"},
          {"bench allreduce --baseline " + folder.file("broken.json", "{"), "broken.json has none"},
          {"bench allreduce --json - --csv -", "cannot both go to standard output"},
          {"bench allreduce --csv /no-such-folder/file.csv", "cannot write /no-such-folder/file.csv"},
          {"bench ops --cases '['", "'[' is not a regular expression"},
          {"bench ops --cases nothing-like-this", "no case of ops matches 'nothing-like-this'"},
          {"bench ops --seconds nan", "--seconds"},
          {"bench ops --threads -1", "--threads"},
          {"bench ops --follow --json -", "--follow"},
          {"bench autograd --seconds 0", "--seconds"},
          {"bench optim --list --csv /no-such-folder/file.csv", "cannot write /no-such-folder/file.csv"},
          {"bench unused --layers 9", "--layers"},
          {"bench diagnosis --width 6", "bench diagnosis: --width is a multiple of 4, got 6"},
          {"bench mechanisms --steps 0", "--rounds: rounds are a number from 1 to 1000000"},
          {"bench batch-norm --ranks 65", "--ranks"},
      },
      2);
}

TEST_CASE("status 3: a program, a device, a file or data that are not there, or cannot be read") {
  const Folder folder;
  check_rows(
      {
          {"run -n 2 /no/such/program", "cannot start '/no/such/program'"},
          {"run -n 1 " + folder.file("plain.txt", "text"), "cannot start '"},
          {"train digits --quiet --device cuda:99", "cuda"},
          {"train digits --quiet", "cannot find the digits data; looked for /nowhere", "BRIGADE_DATA_DIR=/nowhere"},
          {"train digits --quiet --backend threads", "cannot find the digits data", "BRIGADE_DATA_DIR=/nowhere"},
          {"check --all --device cuda:99", "cuda"},
          {"check --all --reference /nowhere", "/nowhere"},
          {"check --all", "/nowhere", "BRIGADE_REFERENCE_DIR=/nowhere"},
          {"check /no/such/file.safetensors", "/no/such/file.safetensors"},
          {"check " + folder.file("short.safetensors", "abc"), "short.safetensors"},
          {"bench allreduce --baseline /no/such.json", "--baseline: cannot open /no/such.json: No such file"},
          {"bench allreduce --baseline /dev/zero", "--baseline: cannot read /dev/zero: it is not a regular file"},
          {"bench replay /dev/zero", "bench replay: cannot read /dev/zero: it is not a regular file"},
          {"explain /no/such/trace.json", "explain: cannot open /no/such/trace.json: No such file or directory"},
          {"explain /dev/zero", "explain: cannot read /dev/zero: it is not a regular file"},
      },
      3);
}

TEST_CASE("status 3: the benchmarks, where only the program without them has been built") {
  const Folder folder;
  const test::Outcome found = test::run_copied_program(folder.path.string(), "bench allreduce --sizes 4K");
  CHECK(found.status == 3);
  CHECK_MESSAGE(
      contains(found.output, "the benchmarks are a program of their own, " + folder.path.string() +
                                 "/brigade-bench, which cannot be started: No such file or directory. `make build`"),
      found.output);
  CHECK(test::run_copied_program(folder.path.string(), "--version").status == 0);
}

TEST_CASE("status 0 for help, with examples, of every command") {
  for (const char* command : {"demo",
                              "run",
                              "train",
                              "diagnose",
                              "check",
                              "explain",
                              "doctor",
                              "bench",
                              "bench collectives",
                              "bench allreduce",
                              "bench ops",
                              "bench autograd",
                              "bench optim",
                              "bench amp",
                              "bench unused",
                              "bench diagnosis",
                              "bench mechanisms",
                              "bench batch-norm",
                              "bench bucket",
                              "bench ddp",
                              "bench replay"}) {
    CAPTURE(command);
    const test::Streams help = test::run_program_apart(std::string(command) + " --help");
    CHECK(help.status == 0);
    CHECK(help.errors == "");
    CHECK((contains(help.output, "Example:\n") || contains(help.output, "Examples:\n")));
    CHECK(contains(help.output, "  brigade " + std::string(command)));
  }
  CHECK(test::run_program("--help").status == 0);
  CHECK(test::run_program("--version").status == 0);
}

TEST_CASE("status 3: output that does not arrive is not a success") {
  check_rows(
      {{"diagnose --list >/dev/full", "not all of the output could be written to standard output: No space left"},
       {"--help >/dev/full", "No space left on device"},
       {"--version >/dev/full", "No space left on device"},
       {"run -n 1 -- echo line >/dev/full", "not all that the ranks wrote could be passed on: No space left on device"},
       {"diagnose --list --json - >/dev/full", "cannot write to standard output: No space left on device"},
       {"diagnose --list --json /dev/full >/dev/null", "cannot write /dev/full: No space left on device"}},
      3);
}

TEST_CASE("a file that a command cannot write again stays as it is") {
  const Folder folder;
  const std::string path = folder.file("results.json", "old");
  // SIGXFSZ is ignored, so that a write beyond the limit fails instead of ending the program.
  const test::Outcome found = test::run_program("diagnose --list --json " + path, "trap '' XFSZ; ulimit -f 0;", 60);
  CHECK(found.status == 3);
  CHECK_MESSAGE(contains(found.output, "the old file, if there was one, is untouched"), found.output);
  std::ifstream file(path);
  CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == "old");
}

}  // namespace brigade::test::exit_status_test
