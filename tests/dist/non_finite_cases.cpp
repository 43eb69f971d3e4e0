// The origin of an infinity or NaN: the first operation, in forward or in backward, or none where none is known.
#include "mechanisms_net.h"
#include "nets.h"
#include "rank_case.h"

#include <brigade/autograd/function.h>

#include <limits>

namespace brigade::test::non_finite_cases {

using namespace mechanisms;  // NOLINT: loss_of and batch_of

// Runs one backward in which only the last rank takes `path`, and returns its warning, or nullopt if there is none.
std::optional<dist::Verdict> warned(const dist::ProcessGroupPtr& group, const PathsImpl::Path& path) {
  manual_seed(1);
  const bool takes = group->rank() == group->size() - 1;
  Paths net(takes ? path : [](PathsImpl& sound, const Tensor& h) { return h + sound.b(h); });
  dist::DistributedDataParallel<Paths> ddp(net, group);
  const dist::AdvisoryCollector quiet;
  loss_of(ddp(batch_of(group->rank(), 0))).backward();
  for (const dist::Verdict& verdict : ddp.advisories()) {
    if (verdict.severity == dist::Severity::Warning) return verdict;
  }
  return std::nullopt;
}

std::string names(const dist::ProcessGroupPtr& group, const PathsImpl::Path& path, const std::string& op,
                  unsigned line) {
  const auto verdict = warned(group, path);
  if (!verdict) return "nothing was said";
  if (verdict->kind != "non_finite_gradients") return verdict->message;
  if (verdict->ranks != std::vector<int>{group->size() - 1}) return "ranks: " + verdict->message;
  if (verdict->cause.op != op) return verdict->cause.op + ": " + verdict->message;
  if (!op.empty() && verdict->cause.place.line != line) return "line: " + verdict->message;
  const bool speaks_of_it = verdict->advice.find("the operation that is named") != std::string::npos;
  return speaks_of_it == !op.empty() ? "" : "advice: " + verdict->advice;
}
std::string sound(const dist::ProcessGroupPtr& group, const PathsImpl::Path& path) {
  const auto verdict = warned(group, path);
  return verdict ? "a sound program: " + verdict->message : "";
}

// The identity, with an infinite gradient.
struct Explodes : autograd::Function<Explodes> {
  static Tensor forward(autograd::AutogradContext&, const Tensor& x) { return x * 1.0; }
  static std::vector<Tensor> backward(autograd::AutogradContext&, const std::vector<Tensor>& grads) {
    return {grads[0] * std::numeric_limits<double>::infinity()};
  }
};

std::string check_first_operation(const dist::ProcessGroupPtr& group) {
  const unsigned root_line = __LINE__ + 1;
  const auto root = [](PathsImpl& net, const Tensor& h) { return h + sqrt(net.b(h) * 0.0); };
  const auto sound_root = [](PathsImpl& net, const Tensor& h) { return h + sqrt(net.b(h) * 0.0 + 1.0); };
  const unsigned log_line = __LINE__ + 1;
  const auto logarithm = [](PathsImpl& net, const Tensor& h) { return h * log(net.b(h) * 0.0 - 1.0); };
  const auto masked = [](PathsImpl& net, const Tensor& h) {
    const double infinite = std::numeric_limits<double>::infinity();
    const Tensor mask = cat({full({1}, -infinite, kFloat64), zeros({7}, kFloat64)});
    return softmax(net.b(h) + mask, -1);
  };
  const unsigned custom_line = __LINE__ + 1;
  const auto custom = [](PathsImpl& net, const Tensor& h) { return h + Explodes::apply(net.b(h)); };
  const std::pair<const char*, std::string> found[] = {
      {"root of 0", names(group, root, "sqrt", root_line)},
      {"root of 1", sound(group, sound_root)},
      {"logarithm below 0", names(group, logarithm, "log", log_line)},
      {"an infinite mask", sound(group, masked)},
      {"a custom function", names(group, custom, "Explodes", custom_line)},
  };
  for (const auto& [which, wrong] : found) {
    if (!wrong.empty()) return fmt::format("{}: {}", which, wrong);
  }
  return "";
}
const AddRankCase add_first_operation("the first operation that made an infinity or a NaN is named, or none",
                                      &check_first_operation, everywhere({2}));

}  // namespace brigade::test::non_finite_cases
