// Post-local SGD: global averages first, then none.
#include <brigade/dist/reducer/comm_hook.h>

namespace brigade::dist {

namespace {

class PostLocalSgdHook final : public CommHook {
 public:
  explicit PostLocalSgdHook(uint64_t start) : start_(start) {}
  std::string name() const override { return "post_local_sgd"; }
  bool begin_round(uint64_t round) override { return round < start_; }
  WorkPtr run(ProcessGroup& group, const GradBucket& bucket, const CollectiveOptions& options,
              SourceLocation where) override {
    return group.all_reduce(bucket.buffer(), options, where);
  }

 private:
  uint64_t start_;
};

}  // namespace

CommHookPtr post_local_sgd_hook(uint64_t start_local_sgd_iter) {
  return std::make_shared<PostLocalSgdHook>(start_local_sgd_iter);
}

}  // namespace brigade::dist
