// A reducer without observers: the mechanism alone.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <memory>

namespace brigade::test::reducer_alone_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

// Counts the events it receives, and lets rank 0 send a truth with each bucket.
struct Counter final : dist::ReducerObserver, dist::SentWord {
  explicit Counter(int of_rank) : rank(of_rank) {}
  int rank;
  int begun = 0, ready = 0, finished = 0, errors = 0, accepted = 0, buckets = 0, truths = 0;
  std::vector<dist::SentWord*> words() override { return {this}; }
  dist::WordKind kind() const override { return dist::WordKind::Truth; }
  uint64_t value() override { return rank == 0 ? 1 : 0; }
  void read(const dist::WordReading& reading) override {
    ++buckets;
    truths += reading.all_have_gradients ? reading.count : 100;
  }
  bool accepts(const dist::Round&, uint32_t) override {
    ++accepted;
    return true;
  }
  void on_begin(const dist::Round&, const autograd::Plan*) override { ++begun; }
  bool hears_gradients() const override { return true; }
  void on_ready(const dist::Round&, uint32_t) override { ++ready; }
  void on_finish(const dist::Round&) override { ++finished; }
  std::exception_ptr on_error(const dist::Round&, const dist::TracedBackward*, const std::string&) override {
    ++errors;
    return nullptr;
  }
};

Values gradients_of(const Net& net) {
  std::vector<Tensor> gradients;
  for (const Tensor& each : net->parameters())
    gradients.push_back(each.grad());
  return values_of(gradients);
}

std::string check_alone(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  Net alone;
  loss_of(alone(whole_batch(group->size(), 0))).backward();
  const auto counter = std::make_shared<Counter>(group->rank());
  for (const bool is_observed : {false, true}) {
    manual_seed(1);
    Net net;
    std::vector<dist::NamedParameter> parameters;
    for (const auto& [name, parameter] : net->named_parameters())
      parameters.push_back({name, parameter});
    dist::ReducerOptions options;
    if (is_observed) options.observers = {counter};
    const auto reducer = std::make_shared<dist::Reducer>(parameters, group, options);
    autograd::add_listener(reducer);
    const Tensor x = batch_of(group->rank(), 0);
    loss_of(net(x)).backward();
    std::string wrong = compare(gradients_of(net), gradients_of(alone), 1e-11);
    if (!wrong.empty()) return wrong;
    wrong = expect_error<dist::ReductionError>([&] { loss_of(net->a(x)).backward(); },
                                               {"some parameters were not ready on every rank in backward 2"});
    if (!wrong.empty()) return wrong;
  }
  // Six gradients in the first backward, two in the second.
  const bool all = counter->begun == 2 && counter->ready == 8 && counter->finished == 1 && counter->errors == 1;
  if (!all) return fmt::format("{} backwards, {} gradients", counter->begun, counter->ready);
  const bool heard =
      counter->buckets >= 2 && counter->accepted == counter->buckets && counter->truths == counter->buckets;
  return heard ? ""
               : fmt::format("{} accepted, {} truths in {} buckets", counter->accepted, counter->truths,
                             counter->buckets);
}
const AddRankCase add_alone("a reducer without observers averages, and names no cause", &check_alone);

}  // namespace brigade::test::reducer_alone_cases
