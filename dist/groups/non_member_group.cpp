// A group whose collectives all throw, because the rank is not a member.
#include <brigade/dist/groups/subgroup.h>

#include <brigade/core/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>

namespace brigade::dist {
namespace {

class NonMemberGroup final : public ProcessGroup {
 public:
  NonMemberGroup(const Subgroup& members, std::string why)
      : ProcessGroup(-1, -1, members.timeout, members.names), why_(std::move(why)) {}

  const char* backend() const noexcept override { return "none"; }
  // Nothing is staged.
  bool reaches(Device) const noexcept override { return true; }
  using ProcessGroup::allocate;
  Tensor allocate(int64_t, DType) override { refuse("allocate", {}); }
  Tensor allocate(int64_t, DType, Device) override { refuse("allocate", {}); }
  // There are no peers to notify.
  void abort(std::string_view) override {}
  ProcessGroupPtr make_subgroup(const Subgroup&) override { refuse("new_group", {}); }

 protected:
  WorkPtr do_all_reduce(const Tensor&, const CollectiveOptions& how) override { refuse("all_reduce", how.where); }
  WorkPtr do_broadcast(const Tensor&, const CollectiveOptions& how) override { refuse("broadcast", how.where); }
  WorkPtr do_all_gather(const Tensor&, const Tensor&, const CollectiveOptions& how) override {
    refuse("all_gather", how.where);
  }
  WorkPtr do_reduce_scatter(const Tensor&, const Tensor&, const CollectiveOptions& how) override {
    refuse("reduce_scatter", how.where);
  }
  WorkPtr do_barrier(const CollectiveOptions& how) override { refuse("barrier", how.where); }

 private:
  [[noreturn]] void refuse(const char* what, SourceLocation where) const {
    throw DistError(where, "{}: {}; call it on members only, of which get_rank(group) is not -1", what, why_);
  }

  const std::string why_;
};

}  // namespace

ProcessGroupPtr make_non_member_group(const ProcessGroup& parent, const Subgroup& members) {
  return std::make_shared<NonMemberGroup>(
      members, fmt::format("rank {} is not a member of the group of ranks {} that was made at {}",
                           parent.names()(parent.rank()), fmt::join(members.ranks, ", "), to_string(members.where)));
}

}  // namespace brigade::dist
