// Averages losses over the ranks, counts traffic between begin() and end(), and writes lines of
// JSON on rank 0.
#include <brigade/lab/recipes/step_log.h>

#include <brigade/autograd/functional.h>
#include <brigade/core/allocator.h>
#include <brigade/core/atomic_file.h>
#include <brigade/core/factory.h>
#include <brigade/lab/traffic.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <filesystem>

namespace brigade::lab {

using nlohmann::json;

namespace {

// The lines of steps 1 to `done` of a file of metrics.
std::string lines_until(const std::string& file, int64_t done) {
  std::ifstream in(file);
  std::string kept;
  for (std::string line; std::getline(in, line);) {
    const json parsed = json::parse(line, nullptr, false);
    if (!parsed.is_object() || !parsed.contains("step") || parsed["step"] > done) break;
    kept += line + "\n";
  }
  return kept;
}

}  // namespace

StepLog::StepLog(dist::ProcessGroupPtr group, const TrainOptions& options, int64_t steps, int64_t done)
    : group_(std::move(group)),
      file_name_(group_->rank() == 0 ? options.metrics : ""),
      bar_("training", steps, options.progress && group_->rank() == 0),
      done_(done) {
  if (file_name_.empty()) return;
  // Not of a pipe, which nobody has written to yet.
  if (!options.resume.empty() && std::filesystem::is_regular_file(file_name_))
    write_file(file_name_, lines_until(file_name_, done));
  file_.open(file_name_, options.resume.empty() ? std::ios::trunc : std::ios::app);
  if (!file_) throw IoError("cannot write {}: {}", file_name_, std::strerror(errno));
}

StepLog::~StepLog() = default;

void StepLog::begin() {
  collectives_before_ = latest_collective(*group_);
  step_began_ = Clock::now();
}

double StepLog::end(const std::vector<std::pair<std::string, Tensor>>& losses) {
  step_ms_.push_back(std::chrono::duration<double, std::milli>(Clock::now() - step_began_).count());
  const Traffic traffic = traffic_since(*group_, collectives_before_);
  collectives_ += traffic.collectives;
  bytes_ += traffic.bytes;
  ++done_;

  std::vector<double> own;
  for (const auto& [name, loss] : losses)
    own.push_back(loss.detach().item());
  const Tensor mean = from_values(std::span<const double>(own), {static_cast<int64_t>(own.size())});
  group_->all_reduce(mean, {.op = dist::ReduceOp::Avg, .description = "losses, for the report"})->wait();
  const std::vector<double> means = mean.to_vector<double>();
  loss_.push_back(means.at(0));

  std::string note;
  json line{{"step", done_}, {"ms", step_ms_.back()}};
  for (size_t i = 0; i < losses.size(); ++i) {
    line[losses[i].first] = means[i];
    note += fmt::format("{}{} {:.4f}", i == 0 ? "" : ", ", losses[i].first, means[i]);
  }
  write_line(line.dump());
  bar_.update(done_, note);
  return loss_.back();
}

void StepLog::finish(TrainResult& result) const {
  result.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  result.loss = loss_;
  result.step_ms = step_ms_;
  const auto steps = static_cast<double>(step_ms_.size());
  result.collectives_per_step = static_cast<double>(collectives_) / steps;
  result.bytes_per_step = std::isnan(bytes_) ? -1 : bytes_ / steps;
  result.peak_bytes = static_cast<double>(cpu_allocator_stats().peak_bytes_in_use);
}

void StepLog::tell(const TrainResult& result) { write_line(json{{"metrics", result.metrics}}.dump()); }

void StepLog::write_line(const std::string& line) {
  if (file_name_.empty()) return;
  // At once: whoever follows the file sees the step.
  file_ << line << std::endl;
  if (!file_) throw IoError("cannot write {}: {}", file_name_, std::strerror(errno));
}

}  // namespace brigade::lab
