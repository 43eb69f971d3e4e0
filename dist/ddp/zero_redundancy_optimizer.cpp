// Assigns owners, broadcasts each owner's parameters after a step, and merges and splits the states.
#include <brigade/dist/ddp/zero_redundancy_optimizer.h>

#include <brigade/core/device_runtime.h>
#include <brigade/core/factory.h>
#include <brigade/dist/checks/gradient_values.h>
#include <brigade/dist/checks/wrapper_history.h>
#include <brigade/dist/ddp/detail/broadcast_coalesced.h>
#include <brigade/dist/ddp/detail/zero_overlap.h>
#include <brigade/dist/ddp/join.h>
#include <brigade/dist/errors/json.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace brigade::dist {
namespace {

constexpr int64_t kPieceBytes = 25 << 20;

// "3.exp_avg": entry ".exp_avg" of parameter 3. Returns nullopt for entries of groups ("group0.lr").
struct Entry {
  size_t parameter;
  std::string rest;
};
std::optional<Entry> entry_of(const std::string& name) {
  size_t parameter = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), parameter);
  if (error != std::errc()) return std::nullopt;
  return Entry{parameter, std::string(end, name.data() + name.size())};
}

// What the ranks compare of a state that each has loaded.
std::vector<autograd::KeptState> summary_of(const optim::OptimizerState& state) {
  std::vector<autograd::KeptState> summary;
  for (const auto& [name, tensor] : state.tensors) {
    const auto entry = entry_of(name);
    if (!entry) continue;
    if (summary.empty() || summary.back().position != entry->parameter)
      summary.push_back({.position = entry->parameter, .tensors = {}});
    const GradientValues values = values_of(tensor);
    for (const double number : {values.direction, values.size})
      summary.back().tensors.push_back(full({1}, number, kFloat64));
  }
  return summary;
}

// One rank's share of a state, with the names of the whole state: without the tensors' values, which are sent
// separately. Numbers are encoded by their bits, since JSON has no infinity.
struct Share {
  struct Described {
    std::string name;
    int dtype = 0;
    std::vector<int64_t> sizes;

    int64_t bytes() const {
      return std::accumulate(sizes.begin(), sizes.end(), static_cast<int64_t>(itemsize(static_cast<DType>(dtype))),
                             std::multiplies<>());
    }
  };
  std::vector<std::pair<std::string, int64_t>> numbers;
  std::vector<Described> tensors;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Share::Described, name, dtype, sizes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Share, numbers, tensors)

Share described(const optim::OptimizerState& state) {
  Share share;
  for (const auto& [name, number] : state.numbers)
    share.numbers.emplace_back(name, std::bit_cast<int64_t>(number));
  for (const auto& [name, tensor] : state.tensors)
    share.tensors.push_back({name, static_cast<int>(tensor.dtype()), {tensor.sizes().begin(), tensor.sizes().end()}});
  return share;
}

// Builds the described state, with uninitialized tensors.
optim::OptimizerState state_from(const Share& share) {
  optim::OptimizerState state;
  for (const auto& [name, bits] : share.numbers)
    state.numbers.emplace_back(name, std::bit_cast<double>(bits));
  for (const Share::Described& tensor : share.tensors) {
    Shape sizes;
    for (const int64_t size : tensor.sizes)
      sizes.push_back(size);
    state.tensors.emplace_back(tensor.name, empty(sizes, static_cast<DType>(tensor.dtype)));
  }
  return state;
}

// Copies bytes [begin, begin + piece) of the concatenated tensors to or from the piece.
void copy_piece(const optim::OptimizerState& share, int64_t begin, const Tensor& piece, bool to_piece) {
  auto* const memory = static_cast<char*>(piece.raw_data());
  const int64_t end = begin + piece.numel();
  int64_t at = 0;
  for (const auto& [name, tensor] : share.tensors) {
    const int64_t size = static_cast<int64_t>(tensor.nbytes());
    const int64_t from = std::max(begin, at);
    const int64_t until = std::min(end, at + size);
    if (from < until) {
      char* const own = static_cast<char*>(tensor.raw_data()) + (from - at);
      char* const other = memory + (from - begin);
      const Device device = tensor.device();
      copy_bytes(to_piece ? other : own, to_piece ? Device() : device, to_piece ? own : other,
                 to_piece ? device : Device(), static_cast<size_t>(until - from));
    }
    at += size;
  }
}

// A rank without data steps like the others.
class StepOfShadow final : public JoinHook {
 public:
  explicit StepOfShadow(optim::Optimizer& optimizer) : optimizer_(optimizer) {}
  void main_hook_at(const JoinTurn& turn) override { optimizer_.step(turn.where); }
  std::string describe(int64_t) const override { return "a step of " + optimizer_.name(); }

 private:
  optim::Optimizer& optimizer_;
};

// Throws the same error on every rank when their lines differ.
void check_same_lines(ProcessGroup& group, const std::vector<std::string>& mine, SourceLocation where) {
  const auto lists = decoded_of_all<std::vector<std::string>>(group.all_gather_text(
      to_text(mine), Topic{Phase::Construction, Name("ZeroRedundancyOptimizer: parameters")}, where));
  for (size_t rank = 1; rank < lists.size(); ++rank) {
    for (size_t i = 0; i < std::max(lists[0].size(), lists[rank].size()); ++i) {
      const auto line = [i](const std::vector<std::string>& list) {
        return i < list.size() ? list[i] : std::string("nothing (its list ends here)");
      };
      if (line(lists[0]) == line(lists[rank])) continue;
      throw DistError(
          where,
          "ZeroRedundancyOptimizer expects the same parameters and options on all ranks, but rank 0 has {}, rank {} "
          "has {}; build it alike on every rank",
          line(lists[0]), rank, line(lists[rank]));
    }
  }
}

}  // namespace

std::vector<int> assign_owners(const std::vector<Tensor>& parameters, int ranks, std::vector<int> owners) {
  std::vector<size_t> load(static_cast<size_t>(ranks), 0);
  for (size_t i = 0; i < owners.size(); ++i)
    load[static_cast<size_t>(owners[i])] += parameters[i].nbytes();
  std::vector<size_t> order(parameters.size() - owners.size());
  std::iota(order.begin(), order.end(), owners.size());
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return parameters[a].nbytes() > parameters[b].nbytes(); });
  owners.resize(parameters.size(), 0);
  for (const size_t parameter : order) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += parameters[parameter].nbytes();
    owners[parameter] = static_cast<int>(least - load.begin());
  }
  return owners;
}

ZeroRedundancyOptimizerBase::ZeroRedundancyOptimizerBase(ProcessGroupPtr group, SourceLocation made_at)
    : Optimizer(made_at), group_(std::move(group)) {
  if (!group_) throw ValueError("ZeroRedundancyOptimizer: the process group is empty; see init_process_group");
}

void ZeroRedundancyOptimizerBase::assign(SourceLocation where) {
  const std::vector<Tensor> all = parameters();
  std::vector<std::string> lines;
  for (size_t i = 0; i < all.size(); ++i)
    lines.push_back(fmt::format("parameter {}: {} {}", i, brigade::name(all[i].dtype()), to_string(all[i].sizes())));
  lines.push_back("options of " + options_text());
  check_same_lines(*group_, lines, where);
  owners_ = assign_owners(all, group_->size(), std::move(owners_));
  consolidated_.reset();
}

std::unique_ptr<JoinHook> ZeroRedundancyOptimizerBase::join_hook(const JoinOptions&) {
  return std::make_unique<StepOfShadow>(*this);
}

Topic ZeroRedundancyOptimizerBase::topic_of_broadcast(int owner) {
  static const Name purpose("ZeroRedundancyOptimizer: parameters of rank");
  return {.phase = Phase::Optimizer, .purpose = purpose, .index = owner};
}

void ZeroRedundancyOptimizerBase::use_parameters_as_bucket_view(SourceLocation where) {
  buffers_ = detail::make_owner_buffers(*group_, parameters(), owners_, where);
}

// Broadcasts the parameters in buffers, and removes them from `to_send` (per parameter).
void ZeroRedundancyOptimizerBase::send_buffers(const std::vector<Tensor>& all, std::vector<uint8_t>& to_send) {
  std::vector<std::pair<WorkPtr, const detail::OwnerBuffer*>> sent;
  for (const detail::OwnerBuffer& buffer : buffers_) {
    bool whole = true;  // otherwise it would overwrite parameters that must not change
    for (size_t k = 0; k < buffer.parameters().size(); ++k) {
      const size_t i = buffer.parameters()[k];
      whole = whole && to_send[i] && buffer.holds(k, all[i]);
    }
    if (!whole) continue;
    for (const size_t i : buffer.parameters())
      to_send[i] = 0;
    sent.emplace_back(
        group_->broadcast(buffer.memory(), {.root = buffer.owner(), .topic = topic_of_broadcast(buffer.owner())},
                          stepping_at()),
        &buffer);
  }
  for (const auto& [work, buffer] : sent) {
    work->wait();
    for (const size_t i : buffer->parameters()) {
      if (!owns(i)) all[i].bump_version();
    }
  }
}

void ZeroRedundancyOptimizerBase::do_step() {
  group_->attached<WrapperHistory>().note_shared_step();
  Join::notify_join_context(*this, 0, stepping_at());
  consolidated_.reset();
  loaded_.clear();
  const std::vector<Tensor> all = parameters();
  std::vector<uint8_t> moved(all.size(), 0);  // in backward
  if (overlap_) moved = overlap_->take_moved(stepping_at());
  // Every rank must name the same tensors. Whether a gradient arrived may differ between ranks, but not whether one
  // is required; a parameter that did not move costs bytes but is not written. Frozen parameters are not sent.
  std::vector<uint8_t> to_send(all.size(), 0);
  std::vector<Tensor> own;
  for (size_t i = 0; i < all.size(); ++i) {
    if (moved[i]) continue;
    if (owns(i)) own.push_back(all[i]);
    to_send[i] = all[i].requires_grad() || all[i].grad().defined();
  }
  step_part(own, scaling().grad_factor, stepping_at());
  send_buffers(all, to_send);
  std::vector<std::vector<Tensor>> of_owner(static_cast<size_t>(group_->size()));
  for (size_t i = 0; i < all.size(); ++i) {
    if (to_send[i]) of_owner[static_cast<size_t>(owners_[i])].push_back(all[i]);
  }
  for (int owner = 0; owner < group_->size(); ++owner)
    broadcast_coalesced(*group_, of_owner[static_cast<size_t>(owner)], owner, topic_of_broadcast(owner), stepping_at());
}

void ZeroRedundancyOptimizerBase::consolidate_state_dict(int to, SourceLocation where) {
  if (to < 0 || to >= group_->size()) {
    throw ValueError(where, "consolidate_state_dict: {} is not a rank 0..{}", to, group_->size() - 1);
  }
  // This rank's share, with the names of the whole state.
  std::vector<size_t> owned;
  for (size_t i = 0; i < owners_.size(); ++i) {
    if (owns(i)) owned.push_back(i);
  }
  optim::OptimizerState share;
  if (const optim::Optimizer* const own = inner()) {
    const optim::OptimizerState state = own->state_dict();
    const auto renamed = [&](const Entry& entry) { return std::to_string(owned[entry.parameter]) + entry.rest; };
    for (const auto& [name, number] : state.numbers) {
      if (const auto entry = entry_of(name)) share.numbers.emplace_back(renamed(*entry), number);
    }
    for (const auto& [name, tensor] : state.tensors) {
      if (const auto entry = entry_of(name)) share.tensors.emplace_back(renamed(*entry), kernels::contiguous(tensor));
    }
  }
  const Topic what{Phase::Optimizer, Name("ZeroRedundancyOptimizer: consolidated state")};
  const std::vector<std::string> texts = group_->all_gather_text(to_text(described(share)), what, where);

  const auto whole = plain();
  optim::OptimizerState all = whole->state_dict();  // the options
  for (int rank = 0; rank < group_->size(); ++rank) {
    const bool sends = rank == group_->rank();
    const bool takes = to == group_->rank();
    const auto told = decoded<Share>(texts[static_cast<size_t>(rank)]);
    optim::OptimizerState theirs;
    if (takes && !sends) theirs = state_from(told);
    const optim::OptimizerState& part = sends ? share : theirs;
    if (rank != to) {
      int64_t total = 0;
      for (const Share::Described& tensor : told.tensors)
        total += tensor.bytes();
      for (int64_t begin = 0; begin < total; begin += kPieceBytes) {
        const Tensor piece = group_->allocate(std::min(kPieceBytes, total - begin), kUInt8);
        if (sends) copy_piece(part, begin, piece, true);
        group_->broadcast(piece, {.root = rank, .topic = what}, where)->wait();
        if (takes) copy_piece(part, begin, piece, false);
      }
    }
    if (!takes) continue;
    all.numbers.insert(all.numbers.end(), part.numbers.begin(), part.numbers.end());
    all.tensors.insert(all.tensors.end(), part.tensors.begin(), part.tensors.end());
  }
  if (group_->rank() != to) return;
  // Goes through the plain optimizer, which copies everything and restores its order.
  whole->load_state_dict(all);
  consolidated_ = std::make_shared<const optim::OptimizerState>(whole->state_dict());
}

optim::OptimizerState ZeroRedundancyOptimizerBase::state_dict() const {
  if (!consolidated_) {
    throw DistError(
        "ZeroRedundancyOptimizer: the state is split over {} ranks and has not been consolidated on this rank ({}) "
        "since the last step; call consolidate_state_dict(to) on every rank, then state_dict() on rank `to`",
        group_->size(), group_->rank());
  }
  // A schedule may have changed a learning rate since.
  optim::OptimizerState state = *consolidated_;
  std::map<std::string, double> options;
  for (const auto& [name, number] : plain()->state_dict().numbers)
    options.emplace(name, number);
  for (auto& [name, number] : state.numbers) {
    if (const auto now = options.find(name); now != options.end()) number = now->second;
  }
  return state;
}

std::function<void()> ZeroRedundancyOptimizerBase::undo_point() {
  optim::Optimizer* const own = inner();
  return [this, share = own ? own->undo_point() : nullptr, options = std::shared_ptr<const optim::Optimizer>(plain()),
          consolidated = consolidated_, loaded = loaded_] {
    if (share) share();
    take_options(*options);
    consolidated_ = consolidated;
    loaded_ = loaded;
  };
}

void ZeroRedundancyOptimizerBase::load_state_dict(const optim::OptimizerState& state, SourceLocation where) {
  const auto whole = plain();
  whole->load_state_dict(state, where);
  take_options(*whole);
  const optim::OptimizerState all = whole->state_dict();
  if (optim::Optimizer* const own = inner()) {
    optim::OptimizerState share;
    for (auto& [name, number] : own->state_dict().numbers) {
      if (!entry_of(name)) share.numbers.emplace_back(name, number);  // options are set in each step
    }
    std::vector<std::string> places(owners_.size());  // position in the share
    size_t next = 0;
    for (size_t i = 0; i < owners_.size(); ++i) {
      if (owns(i)) places[i] = std::to_string(next++);
    }
    const auto pick = [&](const auto& from, auto& to) {
      for (const auto& [name, value] : from) {
        const auto entry = entry_of(name);
        if (entry && owns(entry->parameter)) to.emplace_back(places[entry->parameter] + entry->rest, value);
      }
    };
    pick(all.numbers, share.numbers);
    pick(all.tensors, share.tensors);
    own->load_state_dict(share, where);
  }
  consolidated_.reset();
  loaded_ = summary_of(all);
  note_state_loaded(where);
}

}  // namespace brigade::dist
