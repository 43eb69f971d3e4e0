// Saves and loads the parts of a checkpoint; if one does not fit on loading, nothing changes.
#include <brigade/optim/checkpoint.h>

#include <brigade/core/detail/file_formats.h>
#include <brigade/core/factory.h>
#include <brigade/core/safetensors.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/optim/detail/checkpoint_file.h>

#include <map>
#include <set>
#include <tuple>

namespace brigade::optim {
namespace {

using brigade::detail::in_quotes;
using detail::CheckpointPart;

// In the order of the alternatives of a part; a custom part has its own kind.
constexpr const char* kKinds[] = {"module", "optimizer", "generator", "integer", "number"};

class Writer {
 public:
  explicit Writer(std::string part) : prefix_(std::move(part) + "/") {}
  void begin(const std::string& kind, const std::string& type) {
    metadata[prefix_.substr(0, prefix_.size() - 1)] = type.empty() ? kind : kind + " " + type;
  }
  void tensor(const std::string& name, const Tensor& tensor) { tensors.emplace_back(prefix_ + name, tensor); }
  template <class T>
  void number(const std::string& name, T value) {
    metadata[prefix_ + name] = detail::number_text(value);
  }
  void state(const OptimizerState& state) {
    for (const auto& [name, value] : state.tensors)
      tensor(name, value);
    for (const auto& [name, value] : state.numbers)
      number(name, value);
  }

  nn::Named<Tensor> tensors;
  SafetensorsMetadata metadata;

 private:
  std::string prefix_;
};

// A list of differences, shortened.
class Differences {
 public:
  void add(const std::string& text) {
    constexpr int kShown = 8;
    if (++count_ <= kShown) text_ += "\n\t" + text;
    if (count_ == kShown + 1) text_ += "\n\t...";
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int count_ = 0;
};

void check_module(const std::string& where, const nn::Module& module, const CheckpointPart& saved) {
  Differences differences;
  const std::map<std::string, Tensor> given(saved.tensors.begin(), saved.tensors.end());
  std::set<std::string> own;
  for (const auto& [name, tensor] : module.state_dict()) {
    own.insert(name);
    const auto found = given.find(name);
    if (found == given.end()) {
      differences.add("missing " + in_quotes(name) + ": expected " + describe(tensor));
    } else if (found->second.sizes() != tensor.sizes() || found->second.dtype() != tensor.dtype()) {
      differences.add(in_quotes(name) + " is " + describe(found->second) + ", expected " + describe(tensor));
    }
  }
  for (const auto& [name, tensor] : saved.tensors) {
    if (!own.contains(name)) differences.add("unexpected " + in_quotes(name) + ", " + describe(tensor));
  }
  for (const auto& [name, text] : saved.texts)
    differences.add("unexpected number " + in_quotes(name));
  if (differences.text().empty()) return;
  throw ValueError("{} does not fit this {}; build the model as it was when it was saved:{}", where, module.name(),
                   differences.text());
}

OptimizerState state_of(const detail::CheckpointFile& file, const std::string& part) {
  const CheckpointPart& saved = file.part(part);
  return {saved.type, saved.tensors, file.numbers(part)};
}

// A part that holds `count` numbers and nothing else.
void check_simple(const std::string& path, const std::string& part, const CheckpointPart& saved, size_t count) {
  if (saved.tensors.empty() && saved.texts.size() == count) return;
  throw IoError("{}: {} {} holds {} tensors and {} numbers; expected {} numbers alone", path, saved.kind,
                in_quotes(part), saved.tensors.size(), saved.texts.size(), count);
}

// Runs `action` and adds the file and the part to its error.
void within(const std::string& path, const std::string& part, const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    throw ValueError("{}: part {}: {}", path, in_quotes(part), error.what());
  }
}

OptimizerState copy_of(OptimizerState state) {
  for (auto& [name, tensor] : state.tensors) {
    if (!tensor.defined()) continue;
    const Tensor copy = empty(tensor.sizes(), tensor.options());
    kernels::copy(copy, tensor);
    tensor = copy;
  }
  return state;
}

}  // namespace

Checkpoint& Checkpoint::add(const std::string& name, decltype(Part::what) what) {
  if (name.empty() || name == "brigade" || name.find('/') != std::string::npos) {
    throw ValueError("Checkpoint: a part cannot be called {}; expected a name without '/' other than \"brigade\"",
                     in_quotes(name));
  }
  for (const Part& part : parts_) {
    if (part.name == name)
      throw ValueError("Checkpoint: two parts are called {}; expected each name once", in_quotes(name));
  }
  parts_.push_back({name, std::move(what)});
  return *this;
}

Checkpoint& Checkpoint::module(const std::string& name, nn::Module& module) { return add(name, &module); }
Checkpoint& Checkpoint::optimizer(const std::string& name, Optimizer& optimizer) { return add(name, &optimizer); }
Checkpoint& Checkpoint::generator(const std::string& name, RandomGenerator& generator) { return add(name, &generator); }
Checkpoint& Checkpoint::number(const std::string& name, int64_t& number) { return add(name, &number); }
Checkpoint& Checkpoint::number(const std::string& name, double& number) { return add(name, &number); }
Checkpoint& Checkpoint::part(const std::string& name, std::function<OptimizerState()> save,
                             std::function<void(const OptimizerState&)> load) {
  return add(name, Custom{std::move(save), std::move(load)});
}

template <class Scheduler>
Checkpoint& Checkpoint::add_scheduler(const std::string& name, Scheduler& scheduler) {
  const auto save = [&scheduler] {
    const SchedulerState state = scheduler.state_dict();
    return OptimizerState{state.scheduler, {}, state.numbers};
  };
  const auto load = [&scheduler](const OptimizerState& state) {
    if (!state.tensors.empty())
      throw ValueError("a scheduler has no tensors; this one has {}", in_quotes(state.tensors.front().first));
    scheduler.load_state_dict({state.optimizer, state.numbers});
  };
  return add(name, Custom{save, load, "scheduler"});
}

Checkpoint& Checkpoint::scheduler(const std::string& name, LRScheduler& scheduler) {
  return add_scheduler(name, scheduler);
}
Checkpoint& Checkpoint::scheduler(const std::string& name, ReduceLROnPlateau& scheduler) {
  return add_scheduler(name, scheduler);
}

const char* Checkpoint::Part::kind() const {
  const auto* custom = std::get_if<Custom>(&what);
  return custom ? custom->kind : kKinds[what.index()];
}

void Checkpoint::save(const std::string& path) const {
  nn::Named<Tensor> tensors;
  SafetensorsMetadata metadata = {{detail::kCheckpointKey, detail::kCheckpointVersion}};
  for (const Part& part : parts_) {
    Writer writer(part.name);
    const char* kind = part.kind();
    if (auto* const* module = std::get_if<nn::Module*>(&part.what)) {
      writer.begin(kind, (*module)->name());
      for (const auto& [name, tensor] : (*module)->state_dict())
        writer.tensor(name, tensor);
    } else if (auto* const* optimizer = std::get_if<Optimizer*>(&part.what)) {
      const OptimizerState state = (*optimizer)->state_dict();
      writer.begin(kind, state.optimizer);
      writer.state(state);
    } else if (auto* const* generator = std::get_if<RandomGenerator*>(&part.what)) {
      writer.begin(kind, "");
      writer.number("seed", (*generator)->seed());
      writer.number("offset", (*generator)->offset());
    } else if (auto* const* integer = std::get_if<int64_t*>(&part.what)) {
      writer.begin(kind, "");
      writer.number("value", **integer);
    } else if (auto* const* number = std::get_if<double*>(&part.what)) {
      writer.begin(kind, "");
      writer.number("value", **number);
    } else {
      const OptimizerState state = std::get<Custom>(part.what).save();
      writer.begin(kind, state.optimizer);
      writer.state(state);
    }
    tensors.insert(tensors.end(), writer.tensors.begin(), writer.tensors.end());
    metadata.merge(writer.metadata);
  }
  save_safetensors(path, tensors, metadata, {.checksums = true});
}

void Checkpoint::load(const std::string& path, const CheckpointLoadOptions& options, SourceLocation where) {
  const detail::CheckpointFile file(path);
  Differences differences;
  std::set<std::string> own;
  for (const Part& part : parts_) {
    own.insert(part.name);
    const std::string kind = part.kind();
    const auto found = file.parts().find(part.name);
    if (found == file.parts().end()) {
      differences.add("missing " + kind + " " + in_quotes(part.name));
    } else if (found->second.kind != kind) {
      differences.add(in_quotes(part.name) + " is of kind " + in_quotes(found->second.kind) + ", expected " + kind);
    }
  }
  for (const auto& [name, saved] : file.parts()) {
    if (options.strict && !own.contains(name))
      differences.add("unexpected part " + in_quotes(name) + " of kind " + in_quotes(saved.kind));
  }
  if (!differences.text().empty()) {
    throw ValueError("{} was saved from other parts (load(path, {.strict = false}) leaves unread what is not named):{}",
                     path, differences.text());
  }

  // First the checks that change nothing; then the parts that check themselves while loading, which are undone if a
  // later one does not fit; last the assignments that cannot fail.
  std::vector<std::function<void()>> last;
  for (const Part& part : parts_) {
    const std::string& name = part.name;
    if (auto* const* module = std::get_if<nn::Module*>(&part.what)) {
      check_module(path + ": module " + in_quotes(name), **module, file.part(name));
      last.emplace_back([&file, &name, module = *module, where] {
        module->load_state_dict(file.part(name).tensors, /*strict=*/true, where);
      });
    } else if (auto* const* generator = std::get_if<RandomGenerator*>(&part.what)) {
      check_simple(path, name, file.part(name), 2);
      const auto seed = file.number<uint64_t>(name, "seed");
      const auto offset = file.number<uint64_t>(name, "offset");
      last.emplace_back([=, generator = *generator] {
        generator->manual_seed(seed);
        generator->set_offset(offset);
      });
    } else if (auto* const* integer = std::get_if<int64_t*>(&part.what)) {
      check_simple(path, name, file.part(name), 1);
      last.emplace_back([value = file.number<int64_t>(name, "value"), integer = *integer] { *integer = value; });
    } else if (auto* const* number = std::get_if<double*>(&part.what)) {
      check_simple(path, name, file.part(name), 1);
      last.emplace_back([value = file.number<double>(name, "value"), number = *number] { *number = value; });
    }
  }
  std::vector<std::function<void()>> undo;
  try {
    for (const Part& part : parts_) {
      if (auto* const* optimizer = std::get_if<Optimizer*>(&part.what)) {
        const OptimizerState state = state_of(file, part.name);
        std::function<void()> back = (*optimizer)->undo_point();
        within(path, part.name, [&] { (*optimizer)->load_state_dict(state, where); });
        undo.push_back(std::move(back));
      } else if (const auto* custom = std::get_if<Custom>(&part.what)) {
        const OptimizerState state = state_of(file, part.name);
        OptimizerState before = copy_of(custom->save());
        within(path, part.name, [&] { custom->load(state); });
        undo.emplace_back([before = std::move(before), custom] { custom->load(before); });
      }
    }
  } catch (...) {
    for (auto step = undo.rbegin(); step != undo.rend(); ++step)
      (*step)();
    throw;
  }
  for (const auto& step : last)
    step();
}

}  // namespace brigade::optim
