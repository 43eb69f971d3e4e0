// DDP reports, once, a rank that has trained under another autocast than the others for several backwards.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <brigade/amp/autocast.h>

namespace brigade::test::autocast_modes_cases {

using namespace mechanisms;  // NOLINT: for batch_of and loss_of

enum class Under { None, OneRank, OtherDtype, AllRanks, OneStep, Evaluation, MicroBatches, OtherDevice, InTurns };

thread_local unsigned line_of_region = 0;  // the same on every rank

std::vector<dist::Verdict> train_under(const dist::ProcessGroupPtr& group, Under under, int steps = 7) {
  manual_seed(1);
  nn::Linear net(4, 3);
  dist::DistributedDataParallel<nn::Linear> ddp(net, group);
  optim::SGD first({net->weight}, 0.1), second({net->bias}, 0.1);
  const bool last = group->rank() == group->size() - 1;
  for (int s = 0; s < steps; ++s) {
    net->zero_grad();
    const bool on = under == Under::AllRanks || under == Under::OtherDtype ||
                    ((under == Under::OneRank || under == Under::MicroBatches) && last) ||
                    (under == Under::OneStep && last && s >= 1 && s <= 3) || (under == Under::OtherDevice && last) ||
                    (under == Under::InTurns && s % group->size() == group->rank());
    const DType dtype = under == Under::OtherDtype && last ? kFloat16 : kBFloat16;
    const auto loss = [&](int step) {
      line_of_region = __LINE__ + 1;
      const amp::autocast region(under == Under::OtherDevice ? kCUDA : kCPU, dtype, on);
      return loss_of(ddp(batch_of(group->rank(), step).to(kFloat32)).to(kFloat32));
    };
    if (under == Under::MicroBatches) {
      const auto guard = ddp.no_sync();
      loss(s + 20).backward();
    }
    loss(s).backward();
    if (under == Under::Evaluation && last) {
      const amp::autocast region(kCPU, kBFloat16);
      const NoGradGuard no_grad;
      ddp(batch_of(9, s).to(kFloat32));
    }
    first.step();
    second.step();
  }
  return ddp.advisories();
}

std::string check_one_rank(const dist::ProcessGroupPtr& group) {
  const int last = group->size() - 1;
  for (const Under under : {Under::OneRank, Under::OtherDtype, Under::MicroBatches}) {
    const std::vector<dist::Verdict> said = train_under(group, under);
    if (said.size() != 1) return fmt::format("{} verdicts", said.size());
    const dist::Verdict& verdict = said[0];
    if (verdict.kind != "autocast_differs" || verdict.severity != dist::Severity::Warning || verdict.iteration != 4)
      return verdict.message;
    if (verdict.ranks != (last > 1 ? std::vector<int>{last} : std::vector<int>{})) return verdict.message;
    if (to_string(verdict.cause.place) != to_string(Place("dist/autocast_modes_cases.cpp", line_of_region)))
      return verdict.message;
    const std::string region = to_string(verdict.cause.place);
    const std::string expected =
        under == Under::OtherDtype
            ? fmt::format("rank {} ran under float16 on the CPU (the region at {})", last, region)
            : fmt::format("{} ran without autocast, rank {} ran under bfloat16 on the CPU (the region at {})",
                          last > 1 ? "ranks 0 and 1" : "rank 0", last, region);
    if (verdict.cause.text.find(expected) == std::string::npos) return verdict.message;
    if (!train_under(group, under, 3).empty()) return "told before it has lasted";
  }
  return "";
}
const AddRankCase add_one_rank("an autocast that one rank alone trains under is reported in the fourth backward",
                               &check_one_rank, everywhere({2, 3}));

std::string check_healthy(const dist::ProcessGroupPtr& group) {
  for (const Under under :
       {Under::None, Under::AllRanks, Under::OneStep, Under::Evaluation, Under::OtherDevice, Under::InTurns}) {
    const std::vector<dist::Verdict> said = train_under(group, under);
    if (!said.empty()) return fmt::format("{}: {}", static_cast<int>(under), said[0].message);
  }
  return "";
}
const AddRankCase add_healthy(
    "an autocast on all ranks, in an evaluation, for a few batches of one rank, for each in turn, or for another device is "
    "no matter",
    &check_healthy, everywhere({2, 3}));

}  // namespace brigade::test::autocast_modes_cases
