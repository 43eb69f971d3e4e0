#include <brigade/dist/zero_redundancy_optimizer.h>

#include <brigade/autograd/listener.h>
#include <brigade/dist/diagnosis/fields.h>
#include <brigade/dist/replica_check.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace brigade::dist {

namespace {

// "3.exp_avg" gives 3 and ".exp_avg"; -1 for an entry that belongs to no parameter.
std::pair<int64_t, std::string> split_name(const std::string& name) {
  char* end = nullptr;
  const long long index = std::strtoll(name.c_str(), &end, 10);
  return end == name.c_str() ? std::pair<int64_t, std::string>{-1, name} : std::pair<int64_t, std::string>{index, end};
}

}  // namespace

std::vector<int> assign_owners(const std::vector<Tensor>& parameters, int ranks) {
  std::vector<size_t> order(parameters.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return parameters[a].nbytes() > parameters[b].nbytes(); });
  std::vector<size_t> load(static_cast<size_t>(ranks), 0);
  std::vector<int> owners(parameters.size(), 0);
  for (const size_t parameter : order) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += parameters[parameter].nbytes();
    owners[parameter] = static_cast<int>(least - load.begin());
  }
  return owners;
}

ZeroRedundancyOptimizerBase::ZeroRedundancyOptimizerBase(std::vector<Tensor> parameters, ProcessGroupPtr group)
    : group_(std::move(group)) {
  if (!group_) throw ValueError("ZeroRedundancyOptimizer: the process group is empty");
  check_new_parameters(parameters);
  all_ = std::move(parameters);
  owners_ = assign_owners(all_, group_->size());
}

std::vector<Tensor> ZeroRedundancyOptimizerBase::shard() const {
  std::vector<Tensor> own;
  for (size_t i = 0; i < all_.size(); ++i) {
    if (owners_[i] == group_->rank()) own.push_back(all_[i]);
  }
  if (own.empty()) own.push_back(zeros({1}));
  return own;
}

void ZeroRedundancyOptimizerBase::do_step() {
  {
    const autograd::SilentUpdates silent;  // the step of the whole is announced already
    inner().step();
  }
  consolidated_.reset();
  for (int owner = 0; owner < group_->size(); ++owner) {
    std::vector<Tensor> moved;
    for (size_t i = 0; i < all_.size(); ++i) {
      if (owners_[i] == owner && all_[i].grad().defined()) moved.push_back(all_[i]);
    }
    const std::string description = fmt::format("ZeroRedundancyOptimizer: parameters of rank {}", owner);
    if (!moved.empty()) broadcast_coalesced(*group_, moved, owner, description);
  }
}

void ZeroRedundancyOptimizerBase::consolidate_state_dict(int to, SourceLocation where) {
  if (to < 0 || to >= group_->size()) {
    throw ValueError(
        fmt::format("consolidate_state_dict: {} is not a rank 0..{} ({})", to, group_->size() - 1, to_string(where)),
        where);
  }
  const optim::OptimizerState own = inner().state_dict();
  FieldWriter out;
  out << static_cast<int64_t>(own.tensors.size());
  for (const auto& [name, tensor] : own.tensors) {
    const Tensor values = kernels::contiguous(tensor);
    out << name << static_cast<int64_t>(values.dtype()) << static_cast<int64_t>(values.dim());
    for (int d = 0; d < values.dim(); ++d)
      out << values.sizes()[d];
    out << std::string_view(static_cast<const char*>(values.raw_data()), values.nbytes());
  }
  for (const auto& [name, number] : own.numbers)
    out << name << fmt::format("{:.17g}", number);
  const std::vector<std::string> all =
      group_->all_gather_text(out.text(), "ZeroRedundancyOptimizer: consolidated state", where);
  if (group_->rank() != to) return;

  auto whole = std::make_unique<optim::OptimizerState>();
  whole->optimizer = own.optimizer;
  for (int r = 0; r < group_->size(); ++r) {
    // Positions in the shard of rank r are positions among its parameters.
    std::vector<int64_t> place;
    for (size_t i = 0; i < owners_.size(); ++i) {
      if (owners_[i] == r) place.push_back(static_cast<int64_t>(i));
    }
    const auto renamed = [&](const std::string& name) -> std::string {
      const auto [index, rest] = split_name(name);
      if (index < 0) return name;
      return static_cast<size_t>(index) < place.size() ? std::to_string(place[static_cast<size_t>(index)]) + rest : "";
    };
    FieldReader in(all[static_cast<size_t>(r)]);
    for (int64_t count = in.number(); count > 0; --count) {
      const std::string name = renamed(in.next());
      const auto dtype = static_cast<DType>(in.number());
      Shape sizes;
      for (int64_t dims = in.number(); dims > 0; --dims)
        sizes.push_back(in.number());
      const std::string bytes = in.next();
      if (name.empty()) continue;
      const Tensor tensor = empty(sizes, dtype);
      std::memcpy(tensor.raw_data(), bytes.data(), std::min(bytes.size(), tensor.nbytes()));
      whole->tensors.emplace_back(name, tensor);
    }
    while (!in.done()) {
      const std::string original = in.next();
      const double number = std::atof(in.next().c_str());
      const std::string name = renamed(original);
      if (name.empty()) continue;
      const bool of_a_parameter = split_name(name).first >= 0;
      if (!of_a_parameter && r > 0) continue;  // hyperparameters are the same everywhere
      whole->numbers.emplace_back(name, original == "group0.parameters" ? static_cast<double>(all_.size()) : number);
    }
  }
  consolidated_ = std::move(whole);
}

optim::OptimizerState ZeroRedundancyOptimizerBase::state_dict() const {
  if (consolidated_) return *consolidated_;
  throw DistError(
      fmt::format("ZeroRedundancyOptimizer: the state is split over {} ranks; call consolidate_state_dict(to) on every "
                  "rank since the "
                  "last step, then state_dict() on rank `to` (this is rank {})",
                  group_->size(), group_->rank()));
}

void ZeroRedundancyOptimizerBase::load_state_dict(const optim::OptimizerState& state) {
  optim::OptimizerState own;
  own.optimizer = state.optimizer;
  std::vector<int64_t> position(all_.size(), -1);
  int64_t count = 0;
  for (size_t i = 0; i < all_.size(); ++i) {
    if (owners_[i] == group_->rank()) position[i] = count++;
  }
  const auto renamed = [&](const std::string& name) -> std::string {
    const auto [index, rest] = split_name(name);
    if (index < 0) return name;
    if (static_cast<size_t>(index) >= position.size()) return name;  // the inner optimizer refuses it
    const int64_t at = position[static_cast<size_t>(index)];
    return at < 0 ? "" : std::to_string(at) + rest;
  };
  for (const auto& [name, tensor] : state.tensors) {
    if (const std::string mine = renamed(name); !mine.empty()) own.tensors.emplace_back(mine, tensor);
  }
  for (const auto& [name, number] : state.numbers) {
    if (name == "group0.parameters") {
      if (static_cast<size_t>(number) != all_.size()) {
        throw ValueError(fmt::format("ZeroRedundancyOptimizer: the state is of {} parameters, this optimizer has {}",
                                     number, all_.size()));
      }
      own.numbers.emplace_back(name, static_cast<double>(std::max<int64_t>(count, 1)));
    } else if (const std::string mine = renamed(name); !mine.empty()) {
      own.numbers.emplace_back(mine, number);
    }
  }
  inner().load_state_dict(own);
  consolidated_.reset();
}

}  // namespace brigade::dist
