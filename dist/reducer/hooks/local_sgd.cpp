// Post-local SGD: global averages first, then none.
#include <brigade/dist/reducer/comm_hook.h>
#include <brigade/dist/reducer/hooks/iteration.h>

namespace brigade::dist {

namespace {

class PostLocalSgdHook final : public CommHook {
 public:
  explicit PostLocalSgdHook(uint64_t start) : start_(start) {}
  std::string name() const override { return "post_local_sgd"; }
  bool begin_round(uint64_t) override { return iteration_ < start_; }
  WorkPtr run(ProcessGroup& group, const GradBucket& bucket, const CollectiveOptions& options,
              SourceLocation where) override {
    if (bucket.is_last()) ++iteration_;
    return group.all_reduce(bucket.buffer(), options, where);
  }

  std::vector<std::pair<std::string, Tensor>> state_dict() const override { return {iteration_entry(iteration_)}; }
  void load_state_dict(const std::vector<std::pair<std::string, Tensor>>& state) override {
    const uint64_t iteration = iteration_in(state, name());
    for (const auto& [key, tensor] : state) {
      if (key != kIterationKey)
        throw ValueError("{}: the state has an entry '{}' that does not belong there", name(), key);
    }
    iteration_ = iteration;
  }

 private:
  uint64_t start_;
  uint64_t iteration_ = 0;  // global averages so far
};

}  // namespace

CommHookPtr post_local_sgd_hook(uint64_t start_local_sgd_iter) {
  return std::make_shared<PostLocalSgdHook>(start_local_sgd_iter);
}

}  // namespace brigade::dist
