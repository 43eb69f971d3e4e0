// Starts the ranks as threads or processes; processes pass arguments and results through files.
#include <brigade/lab/rank_job.h>

#include <brigade/autograd/gradient_scale.h>
#include <brigade/dist/errors/verdict.h>
#include <brigade/dist/groups/backends.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/dist/rendezvous/launch/environment.h>
#include <brigade/dist/rendezvous/launch/guardian.h>
#include <brigade/dist/rendezvous/launch/launcher.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>

#include <unistd.h>

namespace brigade::lab {
namespace {

std::map<std::string, RankJob>& jobs() {
  static std::map<std::string, RankJob> known;
  return known;
}

const RankJob& find_job(const std::string& name) {
  const auto found = jobs().find(name);
  if (found == jobs().end()) throw ValueError("unknown rank job '{}'", name);
  return found->second;
}

constexpr const char* kMeetingTimeout = "BRIGADE_MEETING_TIMEOUT";

// A separate timeout: the time limit of a collective does not bound how far apart the ranks start.
std::chrono::milliseconds time_to_meet() {
  return dist::timeout_variable(dist::launch_variables(), kMeetingTimeout).value_or(std::chrono::minutes(5));
}

RankResult run_one(const RankJob& job, const dist::ProcessGroupPtr& group, const std::string& arguments) {
  const auto failed = [](const char* kind, const std::exception& error) {
    RankResult result{.text = error.what(), .error = kind};
    const auto* diagnosed = dynamic_cast<const dist::Diagnosed*>(&error);
    if (diagnosed && !diagnosed->verdicts().empty()) {
      result.verdict = diagnosed->verdicts().front().kind;
      result.cause = dist::name(diagnosed->verdicts().front().cause.kind);
    } else if (dynamic_cast<const autograd::ScalerError*>(&error)) {
      result.verdict = "error";  // the loss scaler's own error; the text has all details
    }
    return result;
  };
  try {
    return {.ok = true, .text = job(group, arguments)};
  } catch (const dist::ReductionError& error) {
    return failed("ReductionError", error);
  } catch (const TimeoutError& error) {
    return failed("TimeoutError", error);
  } catch (const PeerError& error) {
    return failed("PeerError", error);
  } catch (const DistError& error) {
    return failed("DistError", error);
  } catch (const ValueError& error) {
    return failed("ValueError", error);
  } catch (const IoError& error) {
    return failed("IoError", error);
  } catch (const DeviceError& error) {
    return failed("DeviceError", error);
  } catch (const Error& error) {
    return failed("Error", error);
  } catch (const std::exception& error) {
    return failed("exception", error);
  }
}

// Rethrows what run_one() has caught, distinguishing only the kinds on which the exit status depends.
[[noreturn]] void throw_as(const std::string& kind, const std::string& text) {
  if (kind == "ValueError") throw ValueError(text);
  if (kind == "IoError") throw IoError(text);
  if (kind == "DeviceError") throw DeviceError(text);
  throw DistError(text);
}

// A folder that is removed with its contents, even when this process is killed.
struct ScratchFolder {
  std::filesystem::path path;
  std::optional<dist::Guardian> guardian;
  ScratchFolder() {
    path = dist::make_guarded_folder("brigade-job");
    if (path.empty())
      throw IoError(
          "cannot make a folder for the results of the ranks, neither in TMPDIR nor elsewhere: {}; set TMPDIR to "
          "a folder that this user may write to",
          std::strerror(errno));
    guardian.emplace(path.string());
  }
};

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  const std::filesystem::path temporary = path.string() + ".part";
  std::ofstream out(temporary, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw IoError("cannot write {}", temporary.string());
  std::filesystem::rename(temporary, path);
}

RankJobOutcome run_on_threads(const RankJob& job, const std::string& arguments, int ranks,
                              std::chrono::milliseconds timeout) {
  RankJobOutcome outcome;
  outcome.ranks.resize(static_cast<size_t>(ranks));
  dist::run_threads(
      ranks,
      [&](dist::ProcessGroupPtr group) {
        outcome.ranks[static_cast<size_t>(group->rank())] = run_one(job, group, arguments);
      },
      timeout);
  return outcome;
}

}  // namespace

std::string EndedBySignal::in_words() const {
  return "ended by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
}

AddRankJob::AddRankJob(const std::string& name, RankJob job) { jobs().emplace(name, std::move(job)); }

int local_rank(const dist::ProcessGroup& group) {
  const std::optional<dist::LaunchedRank> launched = dist::find_launched_rank(dist::launch_variables());
  return launched && launched->local_rank >= 0 ? launched->local_rank : group.rank();
}

std::string backends_in_words() { return "threads, " + dist::backend_names(); }

void check_backend(const std::string& backend) {
  if (backend == "threads" || backend == "auto") return;
  std::string known;
  for (const dist::Backend& each : dist::all_backends()) {
    if (backend == each.name) return;
    known += each.name + " (" + each.reach + "), ";
  }
  throw ValueError("unknown backend '{}'; known are {}auto (one of these), threads", backend, known);
}

RankJobOutcome run_rank_job(const std::string& job, const std::string& arguments, const std::string& backend, int ranks,
                            std::chrono::milliseconds timeout, int stdin_rank) {
  check_backend(backend);
  if (ranks < 1) throw ValueError("expected at least 1 rank, got {}", ranks);
  if (const int launched = launched_ranks(); launched > 1)
    throw ValueError(
        "this command starts its ranks itself, but a launcher has started it {} times; "
        "start it once, without the launcher",
        launched);
  collective_timeout();
  if (backend == "threads") return run_on_threads(find_job(job), arguments, ranks, timeout);

  const ScratchFolder folder;
  write_file(folder.path / "arguments", arguments);
  dist::LaunchOptions options;
  options.ranks = ranks;
  options.stdin_rank = stdin_rank;
  options.prefix_output = false;
  options.environment = {{"BRIGADE_JOB_DIR", folder.path.string()},
                         {"BRIGADE_JOB_BACKEND", backend},
                         {"BRIGADE_JOB_TIMEOUT_MS", std::to_string(timeout.count())}};
  const dist::LaunchOutcome launched = dist::launch_processes({"/proc/self/exe", "rank-job", job}, options);
  if (launched.signal != 0) throw EndedBySignal{launched.signal};
  RankJobOutcome outcome;
  outcome.exit_code = launched.exit_code;
  outcome.summary = launched.summary;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::filesystem::path file = folder.path / std::to_string(rank);
    if (!std::filesystem::exists(file)) {
      outcome.ranks.push_back({.text = launched.summary, .error = "lost"});
      continue;
    }
    // First line: empty, or the kind of the error and the kind and cause of its verdict; then the text.
    const std::string text = read_file(file);
    const size_t newline = text.find('\n');
    std::istringstream words(text.substr(0, newline));
    RankResult result{.ok = newline == 0, .text = text.substr(newline + 1)};
    words >> result.error >> result.verdict >> result.cause;
    outcome.ranks.push_back(std::move(result));
  }
  return outcome;
}

std::chrono::milliseconds collective_timeout() {
  try {
    const dist::Variables variables = dist::launch_variables();
    dist::timeout_variable(variables, kMeetingTimeout);
    return dist::timeout_variable(variables, "BRIGADE_TIMEOUT").value_or(std::chrono::seconds(30));
  } catch (const DistError& error) {
    throw ValueError(error.what());
  }
}

int launched_ranks() {
  try {
    const dist::Variables variables = dist::launch_variables();
    const std::optional<dist::LaunchedRank> launched = dist::find_launched_rank(variables);
    if (!launched) return 0;
    dist::find_meeting_place(variables, *launched);
    return launched->world_size;
  } catch (const DistError& error) {
    throw ValueError(error.what());
  }
}

std::string error_in_words(const JoinedJob& joined) {
  const RankResult& result = joined.result;
  // The only kind whose text is composed from the reports of all ranks, so every rank raises it.
  const bool same_everywhere = result.error == "ReductionError";
  return "rank " + std::to_string(joined.rank) + " (" + result.error +
         "): " + (same_everywhere && joined.rank != 0 ? "the same error as on rank 0" : result.text);
}

void require_ok(const JoinedJob& joined) {
  if (!joined.result.ok) throw_as(joined.result.error, error_in_words(joined));
}

int first_failed(const RankJobOutcome& outcome) {
  // A rank whose peer is gone can only report that.
  for (const bool peers_too : {false, true}) {
    for (size_t rank = 0; rank < outcome.ranks.size(); ++rank) {
      const RankResult& result = outcome.ranks[rank];
      if (!result.ok && (result.error != "PeerError" || peers_too)) return static_cast<int>(rank);
    }
  }
  return -1;
}

void require_ok(const RankJobOutcome& outcome) {
  const int rank = first_failed(outcome);
  if (rank < 0) return;
  const RankResult& result = outcome.ranks[static_cast<size_t>(rank)];
  throw_as(result.error, "rank " + std::to_string(rank) + " (" + result.error + "): " + result.text);
}

RankResult run_rank_job_here(const std::string& job, const dist::ProcessGroupPtr& group, const std::string& arguments) {
  return run_one(find_job(job), group, arguments);
}

JoinedJob join_rank_job(const std::string& job, const std::string& arguments, const std::string& backend,
                        std::chrono::milliseconds timeout) {
  check_backend(backend);
  if (backend == "threads") throw ValueError("the backend threads is for ranks of one process, not of a launcher");
  dist::InitOptions options;
  options.backend = backend;
  options.timeout = timeout;
  options.meeting_timeout = time_to_meet();
  const dist::ProcessGroupPtr group = dist::init_process_group(options);
  return {run_one(find_job(job), group, arguments), group->rank(), group->size(), group->backend()};
}

int rank_job_main(const std::string& job) {
  const char* folder = std::getenv("BRIGADE_JOB_DIR");
  const char* backend = std::getenv("BRIGADE_JOB_BACKEND");
  const char* timeout = std::getenv("BRIGADE_JOB_TIMEOUT_MS");
  if (!folder || !backend || !timeout) {
    std::cerr << "brigade rank-job: this command is for ranks that brigade starts itself\n";
    return 2;
  }
  dist::InitOptions options;
  options.backend = backend;
  options.timeout = std::chrono::milliseconds(std::atoll(timeout));
  // That timeout is for collectives. Processes may need longer to start, however short it is; if one dies, the
  // launcher ends the others.
  options.meeting_timeout = std::max(*options.timeout, time_to_meet());
  dist::ProcessGroupPtr group = dist::init_process_group(options);
  const RankResult result = run_one(find_job(job), group, read_file(std::filesystem::path(folder) / "arguments"));
  const std::string words = result.ok ? "" : result.error + " " + result.verdict + " " + result.cause;
  write_file(std::filesystem::path(folder) / std::to_string(group->rank()), words + "\n" + result.text);
  return 0;
}

}  // namespace brigade::lab
