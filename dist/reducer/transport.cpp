// Posts the collectives of a bucket, and counts them.
#include <brigade/dist/reducer/transport.h>

#include <brigade/dist/errors/collective_info.h>
#include <brigade/dist/groups/own_collectives.h>

#include <fmt/format.h>

#include <utility>

namespace brigade::dist {

Transport::Transport(const ReducerSetup& setup, const Buckets& buckets, uint64_t number, SourceLocation where)
    : setup_(setup),
      buckets_(buckets),
      number_(number),
      where_(where),
      traffic_{.is_sent = !setup.hook || setup.hook->begin_round(number)},
      sent_(buckets.size()) {}

std::string Transport::describe(uint32_t index) const { return fmt::format("bucket {} of {}", index, setup_.title()); }

Topic Transport::topic_of(uint32_t index) const {
  return {Phase::Backward, bucket_purpose(), setup_.options.owner, static_cast<int32_t>(index),
          setup_.hook ? Name(setup_.hook->name()) : Name()};
}

GradBucket Transport::as_grad_bucket(uint32_t index) const {
  const Bucket& bucket = buckets_[index];
  std::vector<Tensor> parameters;
  std::vector<Tensor> gradients;
  for (const uint32_t parameter : bucket.layout.parameters) {
    parameters.push_back(setup_.parameters[parameter].tensor);
    gradients.push_back(buckets_.slot(parameter).view);
  }
  return GradBucket(index, index + 1 == buckets_.size(), bucket.payload.gradients(), std::move(parameters),
                    std::move(gradients), bucket.layout.parameters);
}

void Transport::send(uint32_t index) {
  const Payload& payload = buckets_[index].payload;
  if (!traffic_.is_sent) {
    sent_[index].gradients = completed_work();  // local gradients: this rank's words stand for all
    return;
  }
  CollectiveOptions options{.op = ReduceOp::Avg, .topic = topic_of(index), .iteration = number_};
  if (setup_.hook) {
    run_hook(index, options);
    if (!compares_hook(index)) send_words(index);
    return;
  }
  options.slot_sums = payload.slot_sums();
  sent_[index].gradients = setup_.group->all_reduce(payload.whole(), options, where_);
  ++traffic_.collectives;
  if (payload.has_tail_on_host()) send_words(index);
}

void Transport::run_hook(uint32_t index, const CollectiveOptions& options) {
  try {
    const uint64_t posted_before = collectives_of_this_thread();
    const ReducedByHook not_by_hand;
    sent_[index].gradients = setup_.hook->run(*setup_.group, as_grad_bucket(index), options, where_);
    traffic_.by_hook += collectives_of_this_thread() - posted_before;
    if (!sent_[index].gradients) {
      throw DistError(
          "the communication hook {} returned no Work for {}; return that of a collective, or completed_work()",
          setup_.hook->name(), describe(index));
    }
  } catch (const std::exception& error) {
    abort_after(index, error);
    throw;
  }
}

void Transport::send_words(uint32_t index) {
  static const Name purpose("flags of bucket");
  Topic flags = topic_of(index);
  flags.purpose = purpose;
  sent_[index].words = setup_.group->all_reduce(buckets_[index].payload.tail(),
                                                {.op = ReduceOp::Avg, .topic = flags, .iteration = number_}, where_);
  ++traffic_.collectives;
}

bool Transport::compares_hook(uint32_t index) const {
  return setup_.options.meter && setup_.hook && traffic_.is_sent && buckets_[index].payload.has_tail_on_host();
}

bool Transport::words_wait(uint32_t index) const { return compares_hook(index) && !sent_[index].words; }

bool Transport::has_words_apart(uint32_t index) const { return sent_[index].words || compares_hook(index); }

bool Transport::is_completed(uint32_t index) const {
  const Sent& sent = sent_[index];
  return !words_wait(index) && sent.gradients->is_completed() && (!sent.words || sent.words->is_completed());
}

void Transport::wait(uint32_t index) {
  try {
    const uint64_t posted_before = collectives_of_this_thread();
    const ReducedByHook what_follows(setup_.hook != nullptr);  // a hook may post more collectives while waited for
    sent_[index].gradients->wait();
    traffic_.by_hook += collectives_of_this_thread() - posted_before;
  } catch (const DistError&) {  // a group error: the peers have it, too
    throw;
  } catch (const std::exception& error) {
    abort_after(index, error);
    throw;
  }
}

void Transport::abort_after(uint32_t index, const std::exception& error) const {
  if (!setup_.hook) return;
  setup_.group->abort(
      fmt::format("the communication hook {} threw in {}: {}", setup_.hook->name(), describe(index), error.what()));
}

}  // namespace brigade::dist
