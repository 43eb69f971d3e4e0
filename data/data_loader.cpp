// Keeps the position in the data (epoch and batch), and saves and loads it.
#include <brigade/data/data_loader.h>

#include <brigade/core/warning.h>

#include <cmath>
#include <map>
#include <string>

namespace brigade::data {

DataLoaderBase::DataLoaderBase(int64_t examples, DataLoaderOptions options, SourceLocation where)
    : examples_(examples), options_(std::move(options)) {
  if (examples < 0) throw ValueError(where, "DataLoader: there is no dataset");
  if (options_.batch_size < 1) {
    throw ValueError(where, "DataLoader: batch_size should be a positive integer value, but got batch_size={}",
                     options_.batch_size);
  }
  if (options_.num_workers < 0) {
    throw ValueError(where, "DataLoader: num_workers should be at least 0 (0: no threads), got {}",
                     options_.num_workers);
  }
  if (options_.prefetch_factor < 1) {
    throw ValueError(where, "DataLoader: prefetch_factor should be at least 1, got {}", options_.prefetch_factor);
  }
  if (options_.timeout.count() < 0) {
    throw ValueError(where, "DataLoader: timeout should be at least 0 (0: no limit), got {} ms",
                     options_.timeout.count());
  }
  if (options_.sampler && options_.shuffle) {
    throw ValueError(where, "DataLoader: sampler option is mutually exclusive with shuffle; let the sampler shuffle");
  }
  sampler_ = options_.sampler;
  if (!sampler_ && options_.shuffle) sampler_ = std::make_shared<RandomSampler>(examples, options_.seed);
  if (!sampler_) sampler_ = std::make_shared<SequentialSampler>(examples);
}

int64_t DataLoaderBase::size() const noexcept {
  const int64_t count = sampler_->size();
  return options_.drop_last ? count / options_.batch_size : (count + options_.batch_size - 1) / options_.batch_size;
}

void DataLoaderBase::set_sampler(std::shared_ptr<Sampler> sampler) {
  if (!sampler) throw ValueError("DataLoader: set_sampler() needs a sampler");
  sampler_ = std::move(sampler);
  next_ = {};
  latest_ = nullptr;
}

DataLoaderBase::Position DataLoaderBase::position() const noexcept {
  if (!latest_) return next_;
  return latest_->has_ended ? Position{latest_->epoch + 1, 0} : Position{latest_->epoch, latest_->taken};
}

void DataLoaderBase::set_epoch(uint64_t epoch) noexcept {
  if (!latest_ && epoch == next_.epoch) return;
  next_ = {epoch, 0};
  latest_ = nullptr;
}

std::shared_ptr<detail::Pass> DataLoaderBase::start(detail::MakeBatch make) {
  if (latest_) next_ = {latest_->epoch + 1, 0};
  sampler_->set_epoch(next_.epoch);
  detail::PassPlan plan;
  plan.order = sampler_->indices();
  for (const int64_t index : plan.order) {
    if (index < 0 || index >= examples_) {
      throw IndexError(
          "DataLoader: the sampler gives index {}, but the dataset has {} examples; make the sampler for this dataset",
          index, examples_);
    }
  }
  plan.batch_size = options_.batch_size;
  plan.drop_last = options_.drop_last;
  if (!plan.order.empty() && plan.batches() == 0) {
    warn({"DataLoader: an epoch has no batch: its " + std::to_string(plan.order.size()) +
              " examples do not fill one of batch_size=" + std::to_string(options_.batch_size) +
              ", and drop_last leaves it out",
          "choose a smaller batch_size (on several ranks it is that of each rank), or no drop_last"});
  }
  plan.random = {options_.seed, next_.epoch};
  plan.first = std::min(next_.batches, plan.batches());
  plan.workers = options_.num_workers;
  plan.ahead = static_cast<int64_t>(options_.num_workers) * options_.prefetch_factor;
  plan.limit = options_.timeout;
  auto pass = std::make_shared<detail::Pass>(std::move(plan), std::move(make));
  latest_ = pass->progress();
  return pass;
}

uint64_t DataLoaderBase::fingerprint_of(uint64_t epoch) const {
  sampler_->set_epoch(epoch);
  return sampler_->fingerprint();
}

optim::OptimizerState DataLoaderBase::state_dict() const {
  const Position at = position();
  // A number in a checkpoint holds 53 bits.
  const uint64_t order = fingerprint_of(at.epoch) >> 11;
  return {"DataLoader",
          {},
          {{"epoch", static_cast<double>(at.epoch)},
           {"batches", static_cast<double>(at.batches)},
           {"global_batch", static_cast<double>(global_batch())},
           {"order", static_cast<double>(order)}}};
}

void DataLoaderBase::load_state_dict(const optim::OptimizerState& state, SourceLocation where) {
  std::map<std::string, double> given(state.numbers.begin(), state.numbers.end());
  const auto take = [&](const char* name) {
    const auto found = given.find(name);
    if (found == given.end()) throw ValueError(where, "DataLoader: the state has no number \"{}\"", name);
    const double value = found->second;
    given.erase(found);
    if (!(value >= 0 && value < 0x1p53 && value == std::floor(value)))
      throw ValueError(where, "DataLoader: \"{}\" of the state is {}; expected a whole number", name, value);
    return static_cast<int64_t>(value);
  };
  const Position saved{static_cast<uint64_t>(take("epoch")), take("batches")};
  const int64_t batch = take("global_batch");
  const int64_t order = take("order");
  if (!given.empty() || !state.tensors.empty()) {
    throw ValueError(where, "DataLoader: the state holds \"{}\", which no DataLoader has saved",
                     given.empty() ? state.tensors.front().first : given.begin()->first);
  }
  if (batch != global_batch()) {
    throw ValueError(where,
                     "DataLoader: the state was saved with {} examples in a step of all ranks, and here are {} "
                     "(batch_size {} on {} ranks): training would not go on where it was; choose batch_size so that "
                     "they agree",
                     batch, global_batch(), options_.batch_size, sampler_->world_size());
  }
  const uint64_t now = position().epoch;
  const bool is_same_order = fingerprint_of(saved.epoch) >> 11 == static_cast<uint64_t>(order);
  if (!is_same_order) {
    sampler_->set_epoch(now);
    throw ValueError(where,
                     "DataLoader: the state belongs to another order of the examples; expected the dataset, sampler, "
                     "shuffle and seed that it was saved with");
  }
  next_ = saved;
  latest_ = nullptr;
}

}  // namespace brigade::data
