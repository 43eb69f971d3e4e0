// Wraps a module: runs checks, copies rank 0's model, creates the reducer, and prepares each forward.
#include <brigade/dist/ddp/distributed_data_parallel.h>

#include <brigade/autograd/grad_mode.h>
#include <brigade/autograd/meta.h>
#include <brigade/autograd/tape.h>
#include <brigade/autograd/write_log.h>
#include <brigade/dist/checks/hand_updates.h>
#include <brigade/dist/checks/values.h>
#include <brigade/dist/checks/wrapper_history.h>
#include <brigade/dist/ddp/detail/broadcast_coalesced.h>
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/errors/collective.h>
#include <brigade/dist/observers/advisor.h>
#include <brigade/dist/observers/hook_check.h>
#include <brigade/dist/observers/recorder.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

namespace brigade::dist {
namespace {

// Converts a cap; values beyond any memory size mean no cap.
int64_t bytes_of(double mib) { return mib < 0x1p42 ? static_cast<int64_t>(mib * 0x1p20) : int64_t{1} << 62; }

void check_options(const DDPOptions& options, SourceLocation where) {
  if (!(options.bucket_cap_mb > 0) || !(options.first_bucket_mb > 0))
    throw ValueError("DistributedDataParallel: bucket_cap_mb and first_bucket_mb must be above 0", where);
  if (options.verify_every < 0)
    throw ValueError(where, "DistributedDataParallel: verify_every must be at least 0, got {}", options.verify_every);
  if (options.delay_all_reduce_named_params.empty() != options.param_to_hook_all_reduce.empty()) {
    throw ValueError(
        "DistributedDataParallel: delay_all_reduce_named_params and param_to_hook_all_reduce need to be set at the "
        "same time.",
        where);
  }
  if (options.verify_every > 0 && !options.check_steps)
    throw ValueError("DistributedDataParallel: verify_every needs check_steps", where);
  if (options.gradient_predivide_factor != 1 && options.reduce_dtype != kFloat16) {
    throw ValueError(where,
                     "DistributedDataParallel: gradient_predivide_factor is {}, and needs reduce_dtype = kFloat16: "
                     "other dtypes hold what float32 holds",
                     options.gradient_predivide_factor);
  }
}

std::string words_of(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

// All options except gradient_as_bucket_view, which may differ by rank.
std::vector<ReplicaOption> options_of(const DDPOptions& options) {
  const bool at_once = options.report_at == ReducerOptions::ReportAt::Backward;
  return {{"find_unused_parameters", fmt::format("{}", options.find_unused_parameters)},
          {"static_graph", fmt::format("{}", options.static_graph)},
          {"bucket_cap_mb", fmt::format("{}", options.bucket_cap_mb)},
          {"first_bucket_mb", fmt::format("{}", options.first_bucket_mb)},
          {"broadcast_buffers", fmt::format("{}", options.broadcast_buffers)},
          {"diagnosis", fmt::format("{}", options.diagnosis)},
          {"report_at", at_once ? "Backward" : "NextForward"},
          {"check_steps", fmt::format("{}", options.check_steps)},
          {"verify_every", fmt::format("{}", options.verify_every)},
          {"reduce_dtype", options.reduce_dtype ? brigade::name(*options.reduce_dtype) : "that of the gradients"},
          {"gradient_predivide_factor", fmt::format("{}", options.gradient_predivide_factor)},
          {"parameters_and_buffers_to_ignore", words_of(options.parameters_and_buffers_to_ignore)},
          {"delay_all_reduce_named_params", words_of(options.delay_all_reduce_named_params)},
          {"param_to_hook_all_reduce", words_of({options.param_to_hook_all_reduce})}};
}

}  // namespace

bool DistributedDataParallelBase::is_ignored(const std::string& name) const {
  const auto& names = options_.parameters_and_buffers_to_ignore;
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<NamedParameter> DistributedDataParallelBase::current(const nn::Named<Tensor>& tensors) const {
  std::vector<NamedParameter> result;
  for (const auto& [name, tensor] : tensors) {
    if (!is_ignored(name)) result.push_back({name, tensor});
  }
  return result;
}

DistributedDataParallelBase::DistributedDataParallelBase(std::shared_ptr<nn::Module> module, ProcessGroupPtr group,
                                                         const DDPOptions& options, SourceLocation where)
    : module_(std::move(module)), group_(std::move(group)), options_(options), thread_(std::this_thread::get_id()) {
  if (!module_) throw ValueError("DistributedDataParallel: the module is empty", where);
  if (!group_) throw ValueError("DistributedDataParallel: the process group is empty; see init_process_group", where);
  check_options(options, where);
  Contents contents = sort_out(where);
  owner_ = group_->attached<WrapperHistory>().next(module_->name());
  ReducerOptions reducer_options = make_reducer_options(contents.trainable, where);
  check_same_replicas(*group_, {module_->name(), owner_, options_of(options_), std::move(contents.replica)}, where);
  broadcast_model_from(0, true, where);
  group_->note_exception(false);  // training goes on after what has ended an earlier wrapper
  for (const NamedParameter& each : contents.trainable) {
    if (each.tensor.device() != Device()) group_->choose_way(each.tensor.device(), where);
  }
  observe(reducer_options);
  if (options_.diagnosis) reducer_options.observers.push_back(std::make_shared<HandUpdates>(contents.trainable));
  reducer_ = std::make_shared<Reducer>(std::move(contents.trainable), group_, std::move(reducer_options));
  if (options_.reduce_dtype && !reducer_->parameters().empty())
    reducer_->register_comm_hook(reduce_in_hook(*options_.reduce_dtype, options_.gradient_predivide_factor));
  if (options_.check_steps) check_steps(std::move(contents.ignored));
  note_at_construction(where);
  autograd::add_listener(reducer_);
  if (options_.diagnosis) autograd::Tape::enable();
  // The check of a step compares hand-written values even without diagnosis.
  if (!options_.diagnosis && !options_.check_steps) return;
  std::vector<Tensor> followed = module_->parameters();
  if (!options_.broadcast_buffers) followed.insert(followed.end(), buffers_.begin(), buffers_.end());
  followed_writes_ = std::make_unique<autograd::FollowedWrites>(followed, "wrapping", where);
}

// Also fills parameters_, buffers_ and ignored_parameters_. Throws ValueError for an ignored name that does not
// exist.
DistributedDataParallelBase::Contents DistributedDataParallelBase::sort_out(SourceLocation where) {
  Contents contents;
  std::vector<std::string> unknown = options_.parameters_and_buffers_to_ignore;
  std::map<std::string, const char*> types;
  for (const auto& [path, module] : module_->named_modules())
    types.emplace(path, autograd::intern(module->name())->c_str());
  for (const auto& [name, parameter] : module_->named_parameters()) {
    std::erase(unknown, name);
    autograd::ensure_meta(parameter).registered_as = name;  // the name in errors from now on
    if (is_ignored(name)) {
      contents.ignored.insert(parameter.impl());
      if (parameter.requires_grad()) ignored_parameters_.push_back(parameter);
      continue;
    }
    contents.replica.push_back({"parameter", name, parameter});
    parameters_.push_back(parameter);
    if (parameter.requires_grad()) contents.trainable.push_back({name, parameter, types.at(module_of(name))});
  }
  for (const auto& [name, buffer] : module_->named_buffers()) {
    std::erase(unknown, name);
    if (is_ignored(name)) continue;
    contents.replica.push_back({"buffer", name, buffer});
    buffers_.push_back(buffer);
  }
  if (unknown.empty()) return contents;
  throw ValueError(where,
                   "DistributedDataParallel: `{}`, which is to be ignored, is neither a parameter nor a buffer of {}",
                   unknown.front(), module_->name());
}

// Throws ValueError for a delayed parameter, or a trigger, that is not trainable.
ReducerOptions DistributedDataParallelBase::make_reducer_options(const std::vector<NamedParameter>& trainable,
                                                                 SourceLocation where) const {
  const auto position = [&](const std::string& name) {
    for (uint32_t i = 0; i < trainable.size(); ++i) {
      if (trainable[i].name == name) return i;
    }
    throw ValueError(where, "DistributedDataParallel: `{}` is not a trainable parameter of {}", name, module_->name());
  };
  ReducerOptions result;
  for (const std::string& name : options_.delay_all_reduce_named_params)
    result.delayed.push_back(position(name));
  if (!options_.param_to_hook_all_reduce.empty()) result.trigger = position(options_.param_to_hook_all_reduce);
  result.find_unused_parameters = options_.find_unused_parameters;
  result.static_graph = options_.static_graph;
  result.gradient_as_bucket_view = options_.gradient_as_bucket_view;
  result.limits.first_bytes = bytes_of(options_.first_bucket_mb);
  result.limits.cap_bytes = bytes_of(options_.bucket_cap_mb);
  result.report_at = options_.report_at;
  result.module_name = module_->name();
  result.owner = owner_;
  result.current_parameters = [this] { return current(module_->named_parameters()); };
  result.module_paths = [this] {
    std::unordered_map<const void*, std::string> paths;
    for (const auto& [path, module] : std::as_const(*module_).named_modules())
      paths.emplace(module, path);
    return paths;
  };
  return result;
}

// Attaches the observers.
void DistributedDataParallelBase::speak_for_fabric() noexcept { errors_->speak_for_fabric(); }

void DistributedDataParallelBase::observe(ReducerOptions& options) {
  log_ = std::make_shared<WrapperLog>(group_->rank());
  notes_ = std::make_shared<ActivityNotes>(group_, owner_);
  const auto meter = options_.diagnosis ? std::make_shared<NormMeter>() : nullptr;
  options.meter = meter;
  const auto recorder = std::make_shared<Recorder>(log_, meter);
  errors_ = std::make_shared<ErrorReporter>(options_.diagnosis, log_);
  options.observers = {notes_, errors_};
  if (options_.diagnosis) {
    options.observers.push_back(std::make_shared<HookCheck>(log_));
    options.observers.push_back(std::make_shared<Advisor>(log_, meter, recorder));
  }
  options.observers.push_back(recorder);  // after the advisor, which reads what it has recorded
}

void DistributedDataParallelBase::check_steps(std::unordered_set<const TensorImpl*> ignored) {
  step_check_ = std::make_unique<StepCheck>(
      *reducer_, *log_,
      StepCheckOptions{static_cast<uint64_t>(options_.verify_every), !options_.broadcast_buffers, options_.diagnosis},
      CheckedModule{*module_, [this] { return current(module_->named_parameters()); },
                    [this] { return current(module_->named_buffers()); }, std::move(ignored)});
  reducer_->before_optimizer_step([this](const autograd::Update& update) { (*step_check_)(update); });
}

void DistributedDataParallelBase::note_at_construction(SourceLocation where) {
  if (!options_.check_steps || group_->size() == 1) log_->advisories.tell_alone();
  const Moment moment{.iteration = 0, .where = where, .ranks = group_->size()};
  if (reducer_->parameters().empty()) log_->advisories.add("nothing", nothing_to_reduce(moment));
  for (const NamedParameter& each : reducer_->parameters()) {
    if (!each.tensor.is_contiguous()) log_->advisories.add("strides " + each.name, strides_differ(each, moment));
  }
}

DistributedDataParallelBase::~DistributedDataParallelBase() {
  // The program may catch the exception, and leave the group as if all was well.
  if (std::uncaught_exceptions() > exceptions_) group_->note_exception(true);
  if (notes_) notes_->on_end_of_wrapper();
  // The reducer may outlive the wrapper during a running backward.
  if (reducer_) {
    reducer_->before_optimizer_step(nullptr);
    reducer_->stop_following_buckets();
  }
  for (const auto& [parameter, handle] : step_hooks_)
    parameter.remove_hook(handle);
  // The tape belongs to the thread that wrapped the module.
  if (options_.diagnosis && reducer_ && thread_ == std::this_thread::get_id()) autograd::Tape::disable();
}

void DistributedDataParallelBase::broadcast_buffers_from(int root, SourceLocation where) {
  const auto is_unwritten = [this](size_t i) {
    return i < buffers_sent_.size() && buffers_[i].version() == buffers_sent_[i];
  };
  broadcast_coalesced(*group_, buffers_, root, Topic{Phase::Buffers, Name("buffers"), owner_}, where, is_unwritten);
  note_buffers_are_alike();
}

void DistributedDataParallelBase::note_buffers_are_alike() {
  buffers_sent_.clear();
  for (const Tensor& buffer : buffers_)
    buffers_sent_.push_back(buffer.version());
}

void DistributedDataParallelBase::broadcast_model_from(int root, bool with_buffers, SourceLocation where) {
  std::vector<Tensor> all = parameters_;
  if (with_buffers) all.insert(all.end(), buffers_.begin(), buffers_.end());
  broadcast_coalesced(*group_, all, root, Topic{Phase::Construction, Name("parameters and buffers"), owner_}, where);
  if (with_buffers) note_buffers_are_alike();
}

void DistributedDataParallelBase::look_at_buffers(SourceLocation where) {
  const std::optional<size_t> stale = stale_buffers_.look_at(buffers_);
  if (!stale) return;
  for (const auto& [name, buffer] : module_->named_buffers()) {
    if (!buffer.is_same(buffers_[*stale])) continue;
    Verdict verdict = stale_buffer({name, buffer}, in_words(owner_), where);
    verdict.ranks = {group_->rank()};
    verdict.iteration = reducer_->past().rounds;
    log_->advisories.add_own("stale buffer", std::move(verdict));
  }
}

void DistributedDataParallelBase::note_failed_forward(const char* error, const Tensor* batch) {
  group_->note_failure(error);
  if (!autograd::GradMode::is_enabled() || log_->forwards.lines.empty()) return;
  log_->forwards.error = error;
  if (batch) failed_batch_ = *batch;
}

void DistributedDataParallelBase::pre_forward(const Tensor* batch, SourceLocation where) {
  if (!autograd::GradMode::is_enabled()) {
    notes_->on_unrecorded_forward(where, autograd::GradMode::disabled_at());
    return;
  }
  const Line line = where;
  group_->note_activity({.doing = Doing::Forward, .owner = {Name(module_->name())}, .where = line});
  const bool has_batch = batch && batch->defined();
  try {
    reducer_->prepare_for_forward(has_batch && batch->dim() > 0 ? batch->size(0) : 0, where);
  } catch (const std::exception& error) {
    // One that broke an earlier backward was thrown before; a deferred one is thrown here first.
    if (reducer_->is_broken()) log_->of_backwards.add(error.what(), group_->rank());
    throw;
  }
  if (options_.diagnosis) {
    BegunForwards& forwards = log_->forwards;
    const Tensor failed = std::exchange(failed_batch_, Tensor());
    const bool again = failed.defined() && has_batch && batch->storage() == failed.storage();  // or a part of it
    if (again) forwards.error.clear();
    if (forwards.error.empty()) forwards.where = line;
    if (!again) ++forwards.at(line);
    look_at_buffers(where);
    if (step_check_) step_check_->look_at_modes();
  }
  // As in PyTorch, broadcasts in the first forward after one that syncs, so that all micro-batches of an accumulation
  // start from the same buffers. Also in eval(), where a backward may follow: frozen statistics are buffers, too. An
  // evaluation on one rank, which must not wait for the others, runs under NoGradGuard.
  const bool are_due = std::exchange(buffers_are_due_, reducer_->accumulation().syncs());
  const bool broadcasts = options_.broadcast_buffers && !buffers_.empty() && are_due;
  int source = 0;
  if (const JoinOptions* const join = join_options(); join && (broadcasts || join->throw_on_early_termination))
    source = Join::notify_join_context(*this, broadcasts ? kForwardWithBuffers : kForward, where);
  if (broadcasts) broadcast_buffers_from(source, where);
}

void DistributedDataParallelBase::apply_optimizer_in_backward(
    const std::function<std::unique_ptr<optim::Optimizer>(std::vector<Tensor> parameters)>& make) {
  if (!in_backward_.empty()) throw ValueError("apply_optimizer_in_backward was called before");
  // Either of the next two calls may throw; then nothing has changed.
  std::vector<std::unique_ptr<optim::Optimizer>> made;
  for (const NamedParameter& each : reducer_->parameters())
    made.push_back(make({each.tensor}));
  for (const Tensor& parameter : ignored_parameters_)
    made.push_back(make({parameter}));
  reducer_->follow_buckets({.reduced = [this](std::span<const uint32_t> parameters, SourceLocation) {
    for (const uint32_t parameter : parameters) {
      if (reducer_->parameters()[parameter].tensor.grad().defined()) step_in_backward(*in_backward_[parameter]);
    }
  }});
  in_backward_ = std::move(made);
  for (size_t i = 0; i < ignored_parameters_.size(); ++i) {
    optim::Optimizer* const optimizer = in_backward_[reducer_->parameters().size() + i].get();
    const auto step = [optimizer](const Tensor&) { step_in_backward(*optimizer); };
    step_hooks_.emplace_back(ignored_parameters_[i], ignored_parameters_[i].register_post_accumulate_grad_hook(step));
  }
}

void DistributedDataParallelBase::step_in_backward(optim::Optimizer& optimizer) {
  const autograd::SilentUpdates silent;
  optimizer.step();
  optimizer.zero_grad();
}

std::string DistributedDataParallelBase::describe() const {
  std::string text;
  for (const auto& [path, child] : static_cast<const nn::Module&>(*module_).named_modules()) {
    const auto own = child->named_parameters(false);
    if (own.empty()) continue;
    text += fmt::format("{} ({}):", path.empty() ? "(root)" : path, child->name());
    for (const auto& [name, parameter] : own) {
      const std::string full = path.empty() ? name : path + "." + name;
      text += fmt::format(" {} {}", name, state_of(full, parameter));
    }
    text += "\n";
  }
  return text;
}

}  // namespace brigade::dist
