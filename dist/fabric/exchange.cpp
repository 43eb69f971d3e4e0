// Communication between the ranks of a Fabric: tensors, texts, and the results of reading or writing a file.
#include <brigade/dist/fabric/fabric.h>

#include <brigade/core/factory.h>
#include <brigade/dist/checks/wrapper_history.h>
#include <brigade/kernels/elementwise.h>

#include <iostream>
#include <string>

namespace brigade::dist {

Tensor Fabric::all_reduce(const Tensor& tensor, ReduceOp op, SourceLocation where) const {
  const Tensor result = kernels::clone(tensor);
  group()->all_reduce(result, {.op = op, .description = "Fabric::all_reduce"}, where)->wait();
  return result;
}

double Fabric::all_reduce(double value, ReduceOp op, SourceLocation where) const {
  return brigade::detail::element_as_double(all_reduce(scalar_tensor<double>(value), op, where), 0);
}

Tensor Fabric::all_gather(const Tensor& tensor, SourceLocation where) const {
  std::vector<int64_t> sizes(tensor.sizes().begin(), tensor.sizes().end());
  sizes.insert(sizes.begin(), world_size());
  const Tensor output = empty(Shape(sizes), tensor.options());
  group()->all_gather(output, kernels::contiguous(tensor), {.description = "Fabric::all_gather"}, where)->wait();
  return output;
}

Tensor Fabric::broadcast(const Tensor& tensor, int src, SourceLocation where) const {
  const Tensor result = kernels::clone(tensor);
  group()->broadcast(result, {.root = src, .description = "Fabric::broadcast"}, where)->wait();
  return result;
}

std::string Fabric::broadcast(const std::string& text, int src, SourceLocation where) const {
  if (src < 0 || src >= world_size())
    throw ValueError(where, "Fabric::broadcast: there is no rank {}; the ranks are 0 to {}", src, world_size() - 1);
  const std::string own = global_rank() == src ? text : std::string();
  return group()->all_gather_text(own, "Fabric::broadcast", where)[static_cast<size_t>(src)];
}

void Fabric::barrier(SourceLocation where) const { group()->barrier({.description = "Fabric::barrier"}, where); }

optim::Checkpoint Fabric::checkpoint() {
  optim::Checkpoint checkpoint;
  const std::shared_ptr<OptimizerSteps> own = steps();
  if (own->scaler().is_enabled()) {
    checkpoint.part(
        "scaler", [own] { return own->scaler().state_dict(); },
        [own](const optim::OptimizerState& state) { own->scaler().load_state_dict(state); });
  }
  return checkpoint;
}

namespace {

// Runs `body`, shares its result with the other ranks, and throws if it failed on any, so that no rank continues
// alone. `what`: "could not read".
template <class F>
void all_or_none(ProcessGroup& group, const std::string& path, const char* what, SourceLocation where, F&& body) {
  std::exception_ptr own;
  std::string reason;
  try {
    body();
  } catch (const std::exception& error) {
    own = std::current_exception();
    reason = std::string("-") + error.what();  // never empty
  }
  const std::vector<std::string> reasons = group.all_gather_text(reason, what, where);
  if (own) std::rethrow_exception(own);
  for (size_t rank = 0; rank < reasons.size(); ++rank) {
    if (!reasons[rank].empty()) throw IoError(where, "rank {} {} {}: {}", rank, what, path, reasons[rank].substr(1));
  }
}

}  // namespace

void Fabric::save(const std::string& path, const optim::Checkpoint& checkpoint, SourceLocation where) const {
  all_or_none(*group(), path, "could not write", where, [&] {
    steps()->tell_of_lone_steps();
    group()->attached<WrapperHistory>().run_end_callbacks();
    if (is_global_zero()) checkpoint.save(path);
  });
}

void Fabric::load(const std::string& path, optim::Checkpoint& checkpoint, SourceLocation where) const {
  all_or_none(*group(), path, "could not read", where, [&] { checkpoint.load(path, {}, where); });
}

void Fabric::print(std::string_view text) const {
  // Written in one piece, so that lines of several programs do not mix.
  rank_zero_only([&] { std::cout << std::string(text) + "\n" << std::flush; });
}

void Fabric::log_dict(const std::map<std::string, double>& metrics, int64_t step) const {
  rank_zero_only([&] {
    for (const std::shared_ptr<Logger>& logger : options_.loggers)
      logger->log_metrics(metrics, step);
  });
}

}  // namespace brigade::dist
