// What `brigade explain KIND` prints: other ways to solve what a verdict reports than the one that its text names.
#include <brigade/lab/commands/commands.h>

#include <array>

namespace brigade::lab {
namespace {

struct More {
  std::string_view kind, text;
};

constexpr std::array kMore{
    More{
        "unused_parameters",
        "A backward ended, and these parameters got no gradient. In strict mode (find_unused_parameters = false, the default) "
        "all ranks raise the same error and clear the gradients of this backward before any optimizer moves; training can go "
        "on without wrapping again.\n"
        "- Left out on purpose in some iterations: find_unused_parameters = true. It is free in Brigade; a gradient that "
        "is missing on some ranks counts as zero in the mean.\n"
        "- Never to be trained: freeze it before wrapping (requires_grad_(false)).\n"
        "- Two backwards of one step that reach all parameters together (a loss for each head): report_at = NextForward.\n"
        "- A GAN: ddp.expect(optimizer) before each backward says what it has to reach, Fabric's toggle_optimizer does so by "
        "itself; or a wrapper for each module.\n"
        "- A result that is read through data_ptr() or item() leaves the graph: use the tensor itself in the loss.\n"
        "- What comes out of a collective sends no gradient back. After all_gather, take cat() of the parts with this rank's own "
        "in its place; after all_reduce, sum - own.detach() + own.\n"
        "- A layer whose handle was assigned again: net->fc = net->replace_module(\"fc\", ...) changes handle and tree, "
        "before wrapping."},
    More{"unreached_module",
         "The wrapper's forward ran before each step, and no backward reached it, so its weights stay where they are.\n"
         "- Use its output in the loss, as a tensor: no detach(), item() or no_grad on the way.\n"
         "- Not to be trained in this phase: run its forward under NoGradGuard, or freeze it before wrapping."},
    More{"unmanaged_parameters",
         "The optimizer moves a parameter that no wrapper averages, so the ranks would drift apart.\n"
         "- Register it in the wrapped module before wrapping, or wrap its module too, on every rank.\n"
         "- Average its gradient yourself after backward: group->all_reduce(p.grad(), {.op = ReduceOp::Avg}).\n"
         "- Thawed, replaced or added after wrapping: do so before, or wrap again.\n"
         "- Not to be trained (a teacher): leave it out of the optimizer."},
    More{
        "unreduced_gradients",
        "The step would use gradients of this rank alone.\n"
        "- Gradient accumulation: only the last backward before step() runs outside no_sync; it reduces what has gathered.\n"
        "- Local steps on purpose (local SGD): post_local_sgd_hook and a PeriodicModelAverager, without no_sync.\n"
        "- A gradient set by hand: average it afterwards, group->all_reduce(p.grad(), {.op = ReduceOp::Avg}).\n"
        "- A step inside backward: ddp.apply_optimizer_in_backward(make) steps each parameter when its bucket is reduced."},
    More{"gradients_edited",
         "Something changed reduced gradients on some ranks only, or by other numbers.\n"
         "- Edit after the reduction, on every rank alike; random numbers need the same seed.\n"
         "- An edit by each rank's own numbers belongs before the reduction: in a gradient hook, on every rank."},
    More{"edited_before_reduction",
         "The gradient was still local when it was changed, so each rank did so by its own numbers.\n"
         "- Clip, scale or mask after the backward that reduces, before step(), on every rank.\n"
         "- In an accumulation that is the last backward, outside no_sync."},
    More{
        "parameters_written",
        "Parameters were written outside of an optimizer, and the ranks hold other values since.\n"
        "- Load a checkpoint on every rank, or broadcast from the rank that has loaded it.\n"
        "- Averages of weights: keep them in clones (detach() without clone() shares memory), and swap them back on every rank "
        "before training goes on.\n"
        "- Values drawn at random: the same seed on every rank."},
    More{"buffers_written",
         "With broadcast_buffers off each rank keeps its own buffers.\n"
         "- Write the same on every rank, or wrap with broadcast_buffers = true.\n"
         "- Each rank is to have its own: name the buffer in parameters_and_buffers_to_ignore."},
    More{"parameters_differ",
         "The replicas do not hold the same values.\n"
         "- verify_every = 1 finds the first step after which they differ.\n"
         "- broadcast_coalesced loads the values of one rank on all, before training goes on."},
    More{
        "buffers_differ",
        "Running statistics follow each rank's own batches.\n"
        "- SyncBatchNorm computes them over all ranks; broadcast_buffers = true takes those of rank 0 in each forward.\n"
        "- Before an evaluation or a save: broadcast_coalesced, or do so on rank 0 only.\n"
        "- A codebook or scale that forward updates and trains on: all_reduce what it is computed from."},
    More{
        "optimizers_differ",
        "The ranks are about to take different steps.\n"
        "- Schedules: step them equally often on every rank. One that reads a loss or a metric needs the same number "
        "everywhere: all_reduce it first (ReduceOp::Avg).\n"
        "- Skipping: decide on all ranks alike. With a loss scaler, step by the scaler everywhere or nowhere, call update() "
        "equally often, and load its state on all ranks.\n"
        "- Parameters dealt out by hand: each belongs to one rank alone, which sends it to the others after its step.\n"
        "- Parameter groups from an unordered container come in any order: sort them.\n"
        "- Uneven data with an optimizer that keeps state: Join({ddp, zero}) with a ZeroRedundancyOptimizer, "
        "JoinOptions::throw_on_early_termination, or a new optimizer on every rank after the join."},
    More{
        "hook_result",
        "A communication hook replaces the all-reduce, and its result is checked against the mean.\n"
        "- Use ReduceOp::Avg, or divide the sum by the number of all ranks, once; before the sum for half types.\n"
        "- Out of range: bf16_compress_hook in place of fp16, a smaller loss scale, DDPOptions::gradient_predivide_factor, or "
        "clipping before the gradients are sent.\n"
        "- Different on purpose: begin_round() returns false where nothing is sent, is_approximate() returns true elsewhere."},
    More{"backward_mismatch",
         "A rank has run more reduced backwards than another, so unlike gradients would be averaged.\n"
         "- As many batches on every rank: DistributedSampler with drop_last, or Join.\n"
         "- Skip a batch on all ranks together: all_reduce whether one wants to, before backward.\n"
         "- A layer shared by two wrappers: call the wrappers, not the modules in them."},
    More{"batch_skipped",
         "A rank caught an error of its forward and went on with the next batch.\n"
         "- all_reduce whether a rank has failed, before backward, and skip together.\n"
         "- Run the same batch again, in parts where memory was short.\n"
         "- Let the exception end the job: the launcher restarts it from a checkpoint."},
    More{
        "collective_mismatch",
        "Nothing was exchanged, and the group is unusable now.\n"
        "- A call under a condition (`if rank == 0`) runs on some ranks only: call it on all, and use the result on one.\n"
        "- Ranks with fewer batches: the same number on all, or Join.\n"
        "- Evaluate under NoGradGuard or through the module, so that no buffers are broadcast."},
    More{
        "collective_timeout",
        "A rank was not there in time.\n"
        "- Its loop ended early, or a branch left the call out: give every rank the same calls.\n"
        "- It is slow (a checkpoint, a long evaluation, one slow batch): a longer time-out (DDP's group, BRIGADE_TIMEOUT).\n"
        "- It has fewer batches: Join."},
    More{
        "rank_lost",
        "The named rank is the cause; the others only report it.\n"
        "- Its own output and exit status (brigade run prints them) say whether it was a signal, an exception, or no memory.\n"
        "- Status 0: it left its loop before the others. Give every rank the same number of batches, reduced backwards and "
        "steps (the last accumulation of an epoch too), or use Join."},
    More{"uneven_batches",
         "The mean of means is the mean of all samples only if the batches are of one size.\n"
         "- DistributedSampler with drop_last, or batches of one size.\n"
         "- Scale each rank's loss by its samples x ranks / all samples: divide a sum by the number of all samples."},
    More{"uneven_micro_batches",
         "A rank with more backwards in its gradient counts for more, or each of them for less.\n"
         "- The same accumulation steps on every rank, and a DistributedSampler with drop_last.\n"
         "- Clear gradients only before the first of them.\n"
         "- Data that ends unevenly on purpose: train inside join()."},
    More{"uneven_factors",
         "A rank whose loss is multiplied by another number counts for more or less.\n"
         "- Divide or scale the loss alike on every rank.\n"
         "- On purpose: multiply by a tensor that holds the rank's weight; of that nothing is said."},
    More{"non_finite_gradients",
         "Infinite or NaN gradients of one rank make those of every rank so.\n"
         "- A zero weight does not help, since 0 * inf is NaN: mask before the operation (where(), clamp()).\n"
         "- autograd::AnomalyMode names the operation and its line.\n"
         "- Half precision: a gradient scaler with float16, or bfloat16.\n"
         "- Skip the step on every rank alike."},
    More{"same_batches",
         "All ranks compute the same, so N ranks train like one.\n"
         "- A DistributedSampler with the rank and the number of ranks.\n"
         "- A generator seeded by the rank; another seed for dropout as well."},
    More{"gradient_outlier",
         "The gradients of one rank are of another size than the others'.\n"
         "- A loss that is summed instead of averaged there, other data, another scale of the learning rate.\n"
         "- The same gradient hooks on every rank, or none."},
};

}  // namespace

std::string_view more_about(std::string_view kind) noexcept {
  for (const More& each : kMore)
    if (each.kind == kind) return each.text;
  return "";
}

}  // namespace brigade::lab
