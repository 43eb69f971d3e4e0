// Combines what the reducer, the optimizers and the write log know about each parameter.
#include <brigade/autograd/meta.h>
#include <brigade/autograd/write_log.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

namespace brigade::dist {
namespace {

// The ranks that used a parameter, if this rank's own use and the number of users determine them.
std::optional<std::vector<int>> ranks_that_used(bool here, int users, int rank, int ranks) {
  std::vector<int> all(static_cast<size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  if (users == ranks) return all;
  if (users == 0) return std::vector<int>();
  if (users == 1 && here) return std::vector<int>{rank};
  if (users != ranks - 1 || here) return std::nullopt;
  std::erase(all, rank);
  return all;
}

// Names of the living optimizers, by parameter.
std::unordered_map<const TensorImpl*, std::vector<std::string>> holders() {
  std::unordered_map<const TensorImpl*, std::vector<std::string>> found;
  std::map<std::string, int> seen;
  for (const optim::Optimizer* optimizer : optim::optimizers_of_this_thread()) {
    const std::string name = optimizer->name();
    const int number = ++seen[name];
    for (const Tensor& parameter : optimizer->parameters())
      found[parameter.impl()].push_back(number == 1 ? name : fmt::format("{}#{}", name, number));
  }
  return found;
}

void add_use(ExplainedParameter& result, const ReducedBackward& backward,
             const std::vector<std::vector<bool>>& used_by_rank, uint32_t i, const ProcessGroup& group) {
  if (backward.number == 0) return;
  result.used = backward.used[i] != 0;
  result.bucket = backward.buckets[i];
  const auto place = std::find(backward.ready_order.begin(), backward.ready_order.end(), i);
  if (place != backward.ready_order.end()) result.ready = static_cast<uint32_t>(place - backward.ready_order.begin());
  if (!backward.whole || !backward.sent) return;
  result.users = backward.users[i];
  if (used_by_rank.empty()) {
    result.used_by = ranks_that_used(*result.used, *result.users, group.rank(), group.size());
    return;
  }
  result.used_by.emplace();
  for (size_t r = 0; r < used_by_rank.size(); ++r) {
    if (used_by_rank[r][i]) result.used_by->push_back(static_cast<int>(r));
  }
}

}  // namespace

const char* DistributedDataParallelBase::state_of(const std::string& name, const Tensor& parameter) const {
  if (is_ignored(name)) return "ignored";
  if (const int64_t position = reducer_->find(parameter); position >= 0) {
    if (!parameter.requires_grad()) return "frozen after wrapping";
    return reducer_->setup().sharing[static_cast<uint32_t>(position)] == Sharing::None ? "reduced"
                                                                                       : "reduced, by several wrappers";
  }
  return parameter.requires_grad() ? "trainable, unknown to the reducer" : "frozen";
}

ExplainedParameter DistributedDataParallelBase::explained(const std::string& name, const Tensor& parameter) const {
  ExplainedParameter result;
  result.name = name;
  result.bytes = static_cast<int64_t>(parameter.nbytes());
  result.state = state_of(name, parameter);
  if (const int64_t position = reducer_->find(parameter); position >= 0) {
    const auto managed = static_cast<uint32_t>(position);
    result.is_reduced = parameter.requires_grad() && !is_ignored(name);
    add_use(result, reducer_->past().backward, errors_->used_by_rank(), managed, *group_);
    result.last_used = reducer_->past().last_used[managed];
    const LocalGradient& local = reducer_->accumulation().local(managed);
    const autograd::AutogradMeta* const known = autograd::meta(parameter);
    if (local.backwards > 0 && known && known->grad.defined()) {
      result.local_backwards = local.backwards;
      result.local_at = local.where;
    }
  }
  if (const auto written = autograd::last_write(parameter)) {
    if (written->is_latest) result.written_by = written->what;
    result.written_at = written->where;
  }
  return result;
}

Explanation DistributedDataParallelBase::explain() const {
  Explanation result;
  result.title = in_words(owner_);
  result.rank = group_->rank();
  result.ranks = group_->size();
  const ReducedBackward& backward = reducer_->past().backward;
  result.backward = backward.number;
  result.backward_at = backward.where;
  result.failed = !backward.sound;
  result.broken = reducer_->is_broken();
  auto held_by = holders();
  std::unordered_set<const TensorImpl*> seen;
  for (const auto& [name, parameter] : module_->named_parameters()) {
    seen.insert(parameter.impl());
    result.parameters.push_back(explained(name, parameter));
    result.parameters.back().optimizers = std::move(held_by[parameter.impl()]);
  }
  for (const NamedParameter& each : reducer_->parameters()) {
    if (seen.contains(each.tensor.impl())) continue;
    result.parameters.push_back(explained(each.name, each.tensor));
    result.parameters.back().state = "reduced, no longer in the module";
    result.parameters.back().optimizers = std::move(held_by[each.tensor.impl()]);
  }
  return result;
}

Explanation DistributedDataParallelBase::explain_with_peers(SourceLocation where) const {
  Explanation result = explain();
  // Exchanged by name: if the module has changed, the ranks may list different parameters.
  std::string used;
  for (const ExplainedParameter& each : result.parameters) {
    if (each.used.value_or(false)) used += each.name + "\n";
  }
  const Topic about{Phase::Inspection, Name("explain_with_peers"), owner_};
  std::vector<std::unordered_set<std::string>> by_rank;
  for (const std::string& text : group_->all_gather_text(fmt::format("{}\n{}", result.backward, used), about, where)) {
    auto& names = by_rank.emplace_back();
    for (size_t at = text.find('\n') + 1, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
      names.insert(text.substr(at, end - at));
    if (text.substr(0, text.find('\n')) != std::to_string(result.backward)) return result;
  }
  for (ExplainedParameter& each : result.parameters) {
    if (!each.used) continue;
    each.used_by.emplace();
    for (size_t r = 0; r < by_rank.size(); ++r) {
      if (by_rank[r].contains(each.name)) each.used_by->push_back(static_cast<int>(r));
    }
    each.users = static_cast<int>(each.used_by->size());
  }
  return result;
}

}  // namespace brigade::dist
