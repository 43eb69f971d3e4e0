// Planted faults: small training steps that go wrong in a known way (or controls that must not be reported), with the
// verdict that is expected. Each lives in a namespace of its own and makes itself known by a static object. One file
// holds the faults of one subject.
#pragma once

#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/errors/verdict.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace brigade::lab {

// What a fault may depend on.
struct FaultContext {
  dist::ProcessGroupPtr group;
  Device device;             // of parameters, batches and what else is trained with
  dist::DDPOptions options;  // to wrap with: the buckets of this run, and the strategy of the fixed run
  bool fixed = false;        // run the repaired program
  // Parameters that are looked at when an error comes: are the replicas still equal?
  std::vector<Tensor>* watched = nullptr;
  // Lines of the fault's file that what is reported must name.
  std::set<uint32_t>* fault_lines = nullptr;

  int rank() const noexcept { return group->rank(); }
  // The options with find_unused_parameters on.
  dist::DDPOptions find_unused() const {
    dist::DDPOptions changed = options;
    changed.find_unused_parameters = true;
    return changed;
  }
  // The next line of the program is one of those that must be named.
  void fault_on_next_line(SourceLocation where = SourceLocation::current()) const {
    if (fault_lines) fault_lines->insert(where.line() + 1);
  }
};

// Moves the module to the device of this run, wraps it, and has the parameters watched.
template <nn::Holder Module>
dist::DistributedDataParallel<Module> wrap(const FaultContext& context, Module module, const dist::DDPOptions& options,
                                           SourceLocation where = SourceLocation::current()) {
  module->to(context.device);
  if (context.watched) *context.watched = module->parameters();
  return dist::DistributedDataParallel<Module>(std::move(module), context.group, options, where);
}
template <nn::Holder Module>
dist::DistributedDataParallel<Module> wrap(const FaultContext& context, Module module,
                                           SourceLocation where = SourceLocation::current()) {
  return wrap(context, std::move(module), context.options, where);
}

inline constexpr int kAnyRanks = -1;  // as the only entry: the ranks are not compared

struct Expectation {
  bool detected = true;                 // false: a control
  std::string kind;                     // "unused_parameters", "rank_lost", ...
  std::vector<std::string> parameters;  // names that the verdicts must list, exactly
  std::vector<int> ranks;               // the ranks at fault; empty: all
  std::string cause;                    // name of the CauseKind; "": not compared
  std::string module = "*";             // path that the cause must name; "*" for any
  bool file_and_line = true;            // the cause must name a line of the fault's file
  dist::Severity severity = dist::Severity::Error;
  std::string op = {};                  // the operation that the cause must name; "": not compared
  std::string note = {};                // a part of the cause's note; "": not compared
  std::vector<std::string> words = {};  // each must stand in the text
};

struct Fault {
  std::string id;    // "UNU-12"
  std::string name;  // of its namespace, "detach_between_gan_halves"; the controls of one namespace share it
  std::string title;
  Expectation expected;
  // The steps. Throws what Brigade reports. Returns all parameters that must be equal on all ranks afterwards.
  std::function<std::vector<Tensor>(const FaultContext&)> run;
  int ranks = 2;
  bool needs_processes = false;                                 // a rank that is a thread cannot do this
  std::chrono::milliseconds timeout{std::chrono::seconds(30)};  // of the group, in the faulty run
  std::string file = {};  // filled in by AddFault: the source file, as it stands in messages
};

struct AddFault {
  explicit AddFault(Fault fault, SourceLocation where = SourceLocation::current());
};

// By id.
const std::vector<Fault>& all_faults();
// The one with this id ("UNU-12", in any case), or all with this name. Throws ValueError that names the nearest ones.
std::vector<const Fault*> find_faults(const std::string& id_or_name);
// The first of them.
const Fault& find_fault(const std::string& id_or_name);

}  // namespace brigade::lab
