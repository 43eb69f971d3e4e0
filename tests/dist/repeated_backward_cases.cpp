// A loss that goes backward twice: reported where the gradients add up, on the ranks that do so.
#include "mechanisms_net.h"
#include "rank_case.h"

namespace brigade::test::repeated_backward_cases {

using namespace mechanisms;  // NOLINT: loss_of and batch_of

enum class Second { SameLoss, SameLossCleared, OtherLossOfTheForward, OtherForward };

// Four steps of two backwards each; returns the warnings, and where the backwards were.
std::vector<dist::Verdict> train(const dist::ProcessGroupPtr& group, Second kind, Place& first, Place& second) {
  manual_seed(1);
  Net net;
  dist::DistributedDataParallel<Net> ddp(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 0.01});
  for (int step = 0; step < 4; ++step) {
    optimizer.zero_grad();
    const Tensor out = ddp(batch_of(group->rank(), step));
    Tensor loss = loss_of(out);
    SourceLocation where = SourceLocation::current();
    first = where;
    loss.backward({.retain_graph = true}, where);
    if (kind == Second::SameLossCleared) optimizer.zero_grad();
    if (kind == Second::OtherLossOfTheForward) loss = loss_of(out * 2.0);
    if (kind == Second::OtherForward) loss = loss_of(ddp(batch_of(group->rank(), 10 + step)));
    where = SourceLocation::current();
    second = where;
    loss.backward(where);
    optimizer.step();
  }
  std::vector<dist::Verdict> found = ddp.advisories();
  std::erase_if(found, [](const dist::Verdict& each) { return each.kind != "backward_repeated"; });
  return found;
}

std::string check(const dist::ProcessGroupPtr& group) {
  const int last = group->size() - 1;
  for (const Second of_last :
       {Second::SameLoss, Second::SameLossCleared, Second::OtherLossOfTheForward, Second::OtherForward}) {
    for (const bool everywhere : {true, false}) {
      const Second kind = everywhere || group->rank() == last ? of_last : Second::OtherForward;
      Place first, second;
      const std::vector<dist::Verdict> found = train(group, kind, first, second);
      const std::string what = fmt::format("case {}, everywhere {}: ", static_cast<int>(of_last), everywhere);
      if (found.size() != (of_last == Second::SameLoss ? 1 : 0)) return what + std::to_string(found.size());
      if (found.empty()) continue;
      std::vector<int> ranks{last};
      for (int r = last - 1; everywhere && r >= 0; --r)
        ranks.insert(ranks.begin(), r);
      const dist::Verdict& told = found.front();
      if (told.ranks != ranks || told.iteration != 2 || !(told.cause.place == second) ||
          !told.cause.text.ends_with("the first was at " + to_string(first)))
        return what + told.message;
    }
  }
  return "";
}
const AddRankCase add("a loss that goes backward twice is reported with both lines, unless its gradients were cleared",
                      &check, everywhere({2, 3}));

}  // namespace brigade::test::repeated_backward_cases
