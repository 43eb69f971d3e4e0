// Losses that the ranks multiply by different numbers: reported in the fourth backward in a row, but not where the
// numbers are weights, or the ranks have different losses.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <brigade/amp/grad_scaler.h>

#include <limits>

namespace brigade::test::uneven_factors_cases {

using namespace mechanisms;  // NOLINT: loss_of and batch_of

using Weighted = std::function<Tensor(const Tensor& output, int rank, int step)>;

std::vector<dist::Verdict> train_with(const dist::ProcessGroupPtr& group, DType dtype, int steps, const Weighted& loss,
                                      Values* trained = nullptr) {
  manual_seed(1);
  Net net;
  net->to(dtype);
  Ddp ddp(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 0.01});
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    loss(ddp(batch_of(group->rank(), step).to(dtype)), group->rank(), step).backward();
    optimizer.step();
  }
  if (trained) *trained = values_of(net->parameters());
  return ddp.advisories();
}

std::string check_reported(const dist::ProcessGroupPtr& group) {
  const int last = group->size() - 1;
  const std::vector<int> blamed = group->size() > 2 ? std::vector<int>{last} : std::vector<int>{};
  unsigned line = 0;
  const Weighted losses[] = {[&](const Tensor& output, int rank, int) {
                               const Tensor loss = loss_of(output);
                               line = __LINE__ + 1;
                               return rank == last ? loss : loss / 4.0;
                             },
                             [&](const Tensor& output, int rank, int) {
                               const Tensor loss = sum(square(output));
                               line = __LINE__ + 1;
                               return loss * (rank == last ? 1.0 / 6 : 1.0 / 12);
                             }};
  for (const Weighted& loss : losses) {
    for (const DType dtype : {kFloat64, kFloat32}) {
      const std::vector<dist::Verdict> said = train_with(group, dtype, 6, loss);
      if (said.size() != 1) return fmt::format("{} verdicts", said.size());
      const dist::Verdict& verdict = said[0];
      const Place expected("dist/uneven_factors_cases.cpp", line);
      if (verdict.kind != "uneven_factors" || verdict.iteration != 4 || verdict.ranks != blamed ||
          to_string(verdict.cause.place) != to_string(expected) || verdict.cause.kind != dist::CauseKind::WrongScale)
        return verdict.message;
    }
  }
  // Eight bits hold few numbers: two may look alike in some backwards.
  const auto said = train_with(group, kBFloat16, 32, losses[0]);
  return said.size() == 1 && said[0].kind == "uneven_factors" ? "" : fmt::format("bfloat16: {}", said.size());
}
// Under a loss scaler all ranks skip that step; JSON has no word for an infinite number.
std::string check_infinite(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  Net net;
  net->to(kFloat32);
  Ddp ddp(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 0.01});
  amp::GradScaler scaler({.init_scale = 64});
  for (int step = 0; step < 4; ++step) {
    optimizer.zero_grad();
    Tensor loss = loss_of(ddp(batch_of(group->rank(), step).to(kFloat32)));
    if (step == 1 && group->rank() == 0) loss = loss * std::numeric_limits<double>::infinity();
    if (step == 2 && group->rank() == 0) loss = loss * std::nan("");
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
  }
  if (optimizer.steps_taken() != 2) return fmt::format("{} steps", optimizer.steps_taken());
  return ddp.advisories().empty() ? "" : ddp.advisories()[0].message;
}
const AddRankCase add_infinite("a loss that one rank multiplies by infinity or NaN is left to the scaler",
                               &check_infinite, everywhere({2, 3}));

const AddRankCase add_reported("a loss that one rank does not divide is reported in the fourth backward in a row",
                               &check_reported, everywhere({2, 3}));

std::string check_healthy(const dist::ProcessGroupPtr& group) {
  const int last = group->size() - 1;
  const int ranks = group->size();
  const std::pair<const char*, Weighted> healthy[] = {
      {"divided on all", [](const Tensor& output, int, int) { return loss_of(output) / 4.0; }},
      {"by tokens, which differ from step to step",
       [](const Tensor& output, int rank, int step) { return loss_of(output) * (1.0 + 0.1 * rank + 0.01 * step); }},
      {"weights that add up to the number of ranks",
       [&](const Tensor& output, int rank, int) {
         return loss_of(output) * (rank == last ? 1.5 : 1 - 0.5 / (ranks - 1));
       }},
      {"a rank without data sends zeros",
       [&](const Tensor& output, int rank, int) { return rank == last ? loss_of(output) * 0.0 : loss_of(output); }},
      {"in three backwards of four",
       [&](const Tensor& output, int rank, int step) {
         return rank == last && step % 4 != 3 ? loss_of(output) / 4.0 : loss_of(output);
       }},
      {"another loss on a rank",
       [&](const Tensor& output, int rank, int) { return rank == last ? mean(abs(output)) * 0.25 : loss_of(output); }},
      {"a weight in a tensor", [&](const Tensor& output, int rank, int) {
         return loss_of(output) * full({}, rank == last ? 0.25 : 1.0, kFloat64);
       }}};
  for (const auto& [what, loss] : healthy) {
    const auto said = train_with(group, kFloat64, 8, loss);
    if (!said.empty()) return fmt::format("{}: {}", what, said[0].message);
  }
  return "";
}
// A rank that is weighted on purpose, by a number that never changes, looks like one that has forgotten to divide.
std::string check_advice(const dist::ProcessGroupPtr& group) {
  const auto weight = [&](int rank) { return rank == group->size() - 1 ? 0.25 : 1.0; };
  Values by_number, by_tensor;
  const auto said_of_number = train_with(
      group, kFloat64, 8, [&](const Tensor& output, int rank, int) { return loss_of(output) * weight(rank); },
      &by_number);
  const auto said_of_tensor = train_with(
      group, kFloat64, 8,
      [&](const Tensor& output, int rank, int) { return loss_of(output) * full({}, weight(rank), kFloat64); },
      &by_tensor);
  if (said_of_number.size() != 1) return fmt::format("by a number: {} verdicts", said_of_number.size());
  if (said_of_number[0].advice.find("multiply it by a tensor") == std::string::npos) return said_of_number[0].advice;
  if (!said_of_tensor.empty()) return "the advice was followed: " + said_of_tensor[0].message;
  return by_number == by_tensor ? "" : "the advice changes the weights";
}
const AddRankCase add_advice("the advice for a rank that counts for more silences the warning and keeps the weights",
                             &check_advice, everywhere({2, 3}));

const AddRankCase add_healthy("losses that are weighted on purpose are no matter", &check_healthy, everywhere({2, 3}));

}  // namespace brigade::test::uneven_factors_cases
