// Watches ranks: forwards their output and signals, and ends all ranks when one fails.
#include <brigade/dist/rendezvous/launch/attempt.h>

#include <brigade/core/error.h>
#include <brigade/dist/rendezvous/launch/outcome.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include <poll.h>
#include <unistd.h>

namespace brigade::dist {
namespace {

// "sleep (process 17)". Replaces unprintable characters, since a process can choose any name.
std::string in_words(const GuardianNews& news) {
  std::string name = news.name;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
  return fmt::format("{} (process {})", name, news.value);
}

}  // namespace

Attempt::Attempt(std::vector<std::string> command, const LaunchOptions& options, int restart, int port, NodePlace place,
                 StoreJob job, const JobSignals& signals, const NodeExits* other_nodes,
                 const RankEndCallback& on_rank_end_callback)
    : command_(std::move(command)),
      options_(options),
      place_(place),
      job_(std::move(job)),
      signals_(signals),
      other_nodes_(other_nodes),
      on_rank_end_(on_rank_end_callback),
      restart_(restart),
      error_folder_(make_guarded_folder("brigade-run")),
      output_(options.prefix_output),
      children_(static_cast<size_t>(options.ranks)) {
  try {
    guardian_.emplace(error_folder_, prepare_programs(restart, port));
  } catch (...) {
    // Without a guardian, no other process removes the folder.
    std::error_code ignored;
    if (!error_folder_.empty()) std::filesystem::remove_all(error_folder_, ignored);
    close_streams();
    throw;
  }
}

Attempt::~Attempt() {
  guardian_.reset();
  close_streams();
}

std::vector<RankProgram> Attempt::prepare_programs(int restart, int port) {
  std::vector<RankProgram> programs;
  for (int local = 0; local < options_.ranks; ++local) {
    Child& child = children_[static_cast<size_t>(local)];
    child.rank = place_.first_rank + local;
    child.running = true;
    programs.emplace_back(child, command_, environment_for(child.rank, local, restart, port),
                          child.rank == options_.stdin_rank);
  }
  return programs;
}

void Attempt::close_streams() {
  for (Child& child : children_) {
    for (Stream* stream : {&child.out, &child.err}) {
      if (stream->fd >= 0) close(std::exchange(stream->fd, -1));
    }
  }
}

Environment Attempt::environment_for(int rank, int local, int restart, int port) const {
  Environment result{{"RANK", std::to_string(rank)},
                     {"WORLD_SIZE", std::to_string(place_.world_size)},
                     {"LOCAL_RANK", std::to_string(local)},
                     {"LOCAL_WORLD_SIZE", std::to_string(options_.ranks)},
                     {"GROUP_RANK", std::to_string(options_.node_rank)},
                     {"MASTER_ADDR", options_.master_addr},
                     {"MASTER_PORT", std::to_string(port)},
                     {"TORCHELASTIC_RESTART_COUNT", std::to_string(restart)},
                     {"BRIGADE_AGENT_STORE", "1"},
                     {"BRIGADE_RUN_ID", job_.run},
                     {"BRIGADE_ANNOUNCE_TO", output_.socket().address_for(rank)}};
  if (!job_.secret.empty()) result.emplace_back("BRIGADE_SECRET", job_.secret);
  if (!error_folder_.empty()) result.emplace_back("BRIGADE_ERROR_FILE", error_file(rank));
  if (!std::getenv("OMP_NUM_THREADS")) {
    const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    result.emplace_back("OMP_NUM_THREADS", std::to_string(std::max(1, cores / options_.ranks)));
  }
  result.insert(result.end(), options_.environment.begin(), options_.environment.end());
  return result;
}

// "": there is no error file.
std::string Attempt::error_file(int rank) const {
  if (error_folder_.empty()) return "";
  return fmt::format("{}/rank-{}", error_folder_, rank);
}

LaunchOutcome Attempt::watch() {
  // Loops until the ranks and the processes that they left behind have ended, not until their streams are closed: a
  // process that the guardian cannot end holds those open. By then everything that the ranks wrote is in the pipes.
  while (!nothing_left_) {
    wait_for_events();
    forward_signals();
    output_.write();
    output_.receive();
    for (Child& child : children_) {
      for (Stream* stream : {&child.out, &child.err}) {
        if (stream->fd >= 0) output_.drain(child, *stream);
      }
    }
    hear_guardian();
    hear_other_nodes();
    escalate();
    if (!ranks_run()) end_what_is_left();
  }
  for (Child& child : children_)
    output_.finish(child);
  tell_what_was_left();
  write_the_rest();
  return outcome();
}

int Attempt::say(const std::string& text) {
  signalled_ = 0;
  output_.tell(text);
  write_the_rest();
  return signalled_;
}

bool Attempt::ranks_run() const {
  return std::any_of(children_.begin(), children_.end(), [](const Child& child) { return child.running; });
}

void Attempt::wait_for_events() {
  // Includes the announcement socket: ranks that announce many errors and print nothing block when it is full.
  const bool other_nodes = other_nodes_ && !failed_node_;
  std::vector<pollfd> entries{{signals_.fd(), POLLIN, 0},
                              {output_.socket().fd(), POLLIN, 0},
                              {guardian_->fd(), POLLIN, 0},
                              {other_nodes ? other_nodes_->fd() : -1, POLLIN, 0}};
  for (const Child& child : children_) {
    for (const Stream* stream : {&child.out, &child.err})
      entries.push_back({output_.waits(*stream) ? -1 : stream->fd, POLLIN, 0});
  }
  output_.add_to(entries);
  poll(entries.data(), entries.size(), time_to_next_step());
}

void Attempt::hear_guardian() {
  while (const std::optional<GuardianNews> news = guardian_->news()) {
    switch (news->kind) {
      case GuardianNews::kCannotStart:
        throw IoError("cannot start '{}': {}", command_.front(), std::strerror(news->value));
      case GuardianNews::kEnded: take_end(children_[static_cast<size_t>(news->rank)], *news); break;
      case GuardianNews::kLeft: left_.push_back(in_words(*news)); break;
      case GuardianNews::kLivesOn: live_on_.push_back(in_words(*news)); break;
      case GuardianNews::kNothingLeft: nothing_left_ = true; break;
      case GuardianNews::kGone:
        throw DistError("launch: the process that watches over the ranks was killed, so they were ended");
    }
  }
}

void Attempt::take_end(Child& child, const GuardianNews& news) {
  child.status = news.value;
  child.running = false;
  child.ended = Clock::time_point(std::chrono::nanoseconds(news.time_ns));
  const RankOutcome end = rank_outcome(child.rank, child.status);
  // Other ranks may wait for it in a rendezvous.
  if (place_.world_size > 1) on_rank_end_(restart_, child.rank, how_it_ended(end));
  if (end.exit_code == 0) {
    // Each end restarts the timeout of the remaining ranks.
    if (options_.exit_timeout.count() > 0 && overdue_.empty()) last_must_end_ = Clock::now() + options_.exit_timeout;
    return;
  }
  if (first_failure_ < 0) first_failure_ = child.rank;
  // The other ranks learn of it through their group, and may report errors themselves.
  if (!next_step_) next_step_ = Clock::now() + options_.grace;
}

// The ranks of a failed node are lost for this node's ranks too, which may notice only when they need them.
void Attempt::hear_other_nodes() {
  if (!other_nodes_ || failed_node_) return;
  failed_node_ = other_nodes_->failure();
  if (!failed_node_) return;
  failed_before_node_ = first_failure_ >= 0;
  if (!next_step_) next_step_ = Clock::now() + options_.grace;
}

void Attempt::forward_signals() {
  while (const int signal = signals_.next()) {
    end_all(signal);
    if (ending_the_rest_) guardian_->end_what_is_left(std::chrono::milliseconds(0));
    if (signalled_ == 0) failed_before_signal_ = first_failure_ >= 0;
    signalled_ = signal;
    if (!next_step_) next_step_ = Clock::now() + options_.grace;
  }
}

void Attempt::end_what_is_left() {
  if (std::exchange(ending_the_rest_, true)) return;
  guardian_->end_what_is_left(options_.grace);
}

void Attempt::tell_what_was_left() {
  if (!left_.empty())
    output_.tell(fmt::format("brigade run: ended what ranks had left running: {}\n", fmt::join(left_, ", ")));
  if (!live_on_.empty()) output_.tell(fmt::format("brigade run: could not end {}\n", fmt::join(live_on_, ", ")));
}

// Waits as long as necessary, unless a signal arrived: then the output is no longer needed.
void Attempt::write_the_rest() {
  for (bool again = true; output_.waits() && again;) {
    std::vector<pollfd> entries{{signals_.fd(), POLLIN, 0}};
    output_.add_to(entries);
    again = poll(entries.data(), entries.size(), signalled_ ? 500 : -1) != 0;
    forward_signals();
    output_.write();
  }
  output_.give_up();
}

int Attempt::time_to_next_step() const {
  if (!next_step_ && !last_must_end_) return -1;
  const auto until = next_step_ ? *next_step_ : *last_must_end_;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left + 1, 0, 60'000));
}

// Ends ranks that hang or were stopped after the others have ended.
void Attempt::end_what_is_overdue() {
  if (!last_must_end_ || Clock::now() < *last_must_end_ || next_step_) return;
  last_must_end_.reset();
  for (const Child& child : children_) {
    if (child.running) overdue_.push_back(child.rank);
  }
  if (overdue_.empty()) return;
  first_failure_ = overdue_.front();
  next_step_ = Clock::now();
}

void Attempt::escalate() {
  end_what_is_overdue();
  if (!next_step_ || Clock::now() < *next_step_) return;
  // Ranks first get time to report, then SIGTERM, then SIGKILL.
  end_all(asked_ ? SIGKILL : SIGTERM);
  asked_ = true;
  next_step_ = Clock::now() + std::chrono::seconds(2);
}

void Attempt::end_all(int signal) {
  for (size_t local = 0; local < children_.size(); ++local) {
    if (!children_[local].running) continue;
    guardian_->signal(static_cast<int>(local), signal);
    children_[local].was_ended = true;
  }
}

// An overdue rank is known directly; otherwise the error files of the ranks are evaluated.
FirstFailure Attempt::first_failure() const {
  std::vector<RankEnd> ends;
  for (const Child& child : children_) {
    const RankOutcome end = rank_outcome(child.rank, child.status);
    if (!overdue_.empty() && child.rank == first_failure_) return {.rank = child.rank, .exit_code = end.exit_code};
    ends.push_back(
        {.rank = child.rank,
         .time_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(child.ended.time_since_epoch()).count(),
         .exit_code = end.exit_code,
         .signal = end.signal,
         .was_ended = child.was_ended,
         .error = read_error_file(error_file(child.rank))});
  }
  return find_first_failure(ends);
}

LaunchOutcome Attempt::outcome() const {
  LaunchOutcome result;
  const FirstFailure first = first_failure();
  for (const Child& child : children_) {
    RankOutcome rank = rank_outcome(child.rank, child.status);
    rank.first_failure = child.rank == first.rank;
    for (const std::string& line : child.last_lines)
      rank.last_words += line + "\n";
    if (rank.first_failure) {
      result.exit_code = first.exit_code;
      result.summary = summary_of(rank, first, {overdue_, options_.exit_timeout});
    }
    result.ranks.push_back(std::move(rank));
  }
  if (failed_node_ && !failed_before_node_ && result.exit_code != 0) failed_node_->blame_in(result);
  result.output_error = output_.write_error();
  if (signalled_ != 0) blame_signal(result, signalled_, failed_before_signal_);
  return result;
}

}  // namespace brigade::dist
