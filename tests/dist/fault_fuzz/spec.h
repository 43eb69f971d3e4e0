// A random training program: models, a training loop, extras of healthy programs, and at most one fault.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace brigade::test::fuzz {

// How a layer computes its result from weight * input + bias.
enum class Form : uint8_t {
  Tanh,
  Custom,  // an autograd::Function
  Sorted,  // one result of two
  Split,   // into parts, which are put together again
  Scaled,  // by a number that is read from it
  Thread   // computed by another thread
};
inline constexpr size_t kForms = 6;

// What the module of a layer is.
enum class Kind : uint8_t {
  Linear,
  Affine,   // a factor and a summand
  Adapter,  // a frozen linear layer and a trained one of low rank
  Experts   // two linear layers, mixed by a gate
};
inline constexpr size_t kKinds = 4;

// Node 0 is the batch, node i + 1 the result of layer i.
struct Layer {
  size_t input = 0;
  size_t module = 0;  // whose weights it uses: its own, or those of an earlier layer
  Kind kind = Kind::Linear;
  bool checkpointed = false;
  Form form = Form::Tanh;
};

// What a healthy program does in addition to its training.
enum class Extra : uint8_t {
  LogResult,        // reads a detached result as a number
  Metric,           // computes with a result under no_grad
  Probe,            // trains another model on a detached result, before backward
  Evaluation,       // a forward with recording, whose result is only read
  LookingHook,      // a gradient hook that changes nothing
  CloneGrads,       // replaces the reduced gradients by clones
  ScaleGrads,       // changes the reduced gradients alike on every rank
  Clip,             // clips by a norm that is never reached
  LaterBackward,    // of another model, between backward and step
  SwapsBack,        // swaps in other weights for an evaluation, and back
  LogWeights,       // reads the norm of each weight, recorded
  Histogram,        // reads the elements of each weight
  LogGradients,     // reads the norm of each gradient
  AverageWeights,   // keeps a moving average of the weights
  Teacher,          // evaluates a copy of the net that follows its weights
  EvaluateBare,     // without the wrapper, under no_grad, in evaluation mode
  SanityCheck,      // the same before training
  EvaluateWrapped,  // through the wrapper, under no_grad
  Accuracy,         // compares results that no gradient can pass
  SaveAndLoad,      // loads the state that it has saved before
  KeepsLosses,      // of all steps, with their graphs
  CaughtError,      // throws in a log, and catches it
  BareForward,      // of the training, around the wrapper, which still averages the gradients
  CaughtForward,    // the forward of an evaluation throws, and is caught
  ReduceMetric,     // averages a metric over the ranks; the ranks do this and the following together
  Barrier,
  Decision  // that rank 0 sends to all
};
inline constexpr size_t kExtras = 27;
inline constexpr bool is_collective(Extra extra) { return extra >= Extra::ReduceMetric; }

struct Beside {
  Extra what;
  size_t layer;
  uint32_t ranks;  // bit r: rank r does it
};

// A second model with a wrapper of its own.
enum class Second : uint8_t {
  None,
  InLoss,  // takes the last head, in the same backward
  After    // has a loss, a backward and a step of its own
};

enum class Mode : uint8_t { Strict, UnusedAllowed, StaticGraph };
enum class Rule : uint8_t { SGD, Adam, RMSprop, Adagrad, ByHand };
inline constexpr size_t kRules = 5;

enum class Fault : uint8_t {
  None,
  SkippedLayer,       // a layer is left out
  DetachedResult,     // detach() behind a layer
  NoGradLayer,        // a layer under no_grad
  Threshold,          // a result goes through a comparison
  ReadAsNumber,       // a result is read as a number, which is used
  DroppedHead,        // a result does not reach the loss
  FrozenLayer,        // after wrapping
  ReplacedLayer,      // after wrapping
  ThawedLayer,        // after wrapping
  ConstantLoss,       // the loss reaches another model only
  EditedGradient,     // on one rank, after the reduction
  OwnGradient,        // set by hand, with other values on each rank
  OtherLearningRate,  // on the last rank
  LastInNoSync,       // the last micro-batch stays local
  WrittenWeight,      // on one rank, outside the optimizer
  MoreMicroBatches,   // on one rank
  SummingHook,        // a communication hook does not divide
  NotCleared,         // a step without zero_grad
  Exception,          // one rank throws in its forward
  CaughtException,    // one rank throws in its forward, and goes on with the next batch
  IdleExpert,         // one of two experts is not called
  LoadedWeights,      // on one rank
  ClippedGradients,   // on one rank, after the reduction
  OtherSchedule,      // one rank schedules twice
  SkippedStep,        // one rank leaves out a step of its optimizers
  RepeatedBackward,   // the same loss goes backward twice
  LoneCollective,     // one rank averages a metric
  EarlyStop,          // one rank ends its training
  ScalingHook,        // one rank has a gradient hook that multiplies
  ReplacedBefore      // a layer is replaced before wrapping, but after the optimizer is made
};
inline constexpr size_t kFaults = 31;
const char* name(Fault fault);
// Whether the fault leaves weights without a gradient, which is correct where unused parameters are allowed.
bool leaves_unused(Fault fault);

struct Planted {
  Fault what = Fault::None;
  bool repeats = false;  // in each later step, too
  size_t layer = 0;      // or module, or node for a dropped head
  uint32_t ranks = 0;    // bit r: on rank r
  int step = 0;
};

struct Spec {
  int ranks = 2;
  std::vector<Layer> layers;
  std::vector<size_t> frozen;  // modules that never train
  std::vector<size_t> heads;   // nodes in the loss
  Mode mode = Mode::Strict;
  bool views = true;
  double bucket_mb = 25;
  bool own_hook = false;  // a communication hook that averages
  Rule rule = Rule::SGD;
  bool two_optimizers = false;  // one for each half of the parameters
  bool scheduler = false;
  Second second = Second::None;
  std::optional<size_t> shared = {};  // a module that the second model has as well
  int wrapped_again = 0;              // before this step; 0: never
  bool old_stays = false;             // the previous wrapper stays alive
  int micro_batches = 1;
  int steps = 2;
  std::vector<Beside> beside;
  Planted allowed;  // no fault, since unused parameters are allowed
  Planted fault;
};

// What Brigade has to report of the fault.
struct Expected {
  std::string kind, cause;
  std::vector<std::string> parameters = {};  // sorted; empty: not compared
  std::vector<int> ranks = {};
  bool is_warning = false;
  bool has_line = true;
  uint32_t silent = 0;  // bit r: rank r ends by the fault itself
  int later = 0;        // steps until it is found
  uint32_t ahead = 0;   // bit r: rank r is a step ahead of the others then
};

// A program with a fault that can be detected, or without one; never a loss without any gradient.
Spec random_spec(uint64_t seed, bool faulty);

// The modules that get a gradient in a step with `fault`.
std::set<size_t> reached(const Spec& spec, const Planted& fault);
// Whether the fault is visible: the weights of an omitted layer may be used elsewhere.
bool is_telling(const Spec& spec);
Expected expected_of(const Spec& spec);

std::string in_words(const Spec& spec);
// Simpler programs with the same fault, to find the smallest that still goes wrong.
std::vector<Spec> simpler(const Spec& spec);

// Adds to the loss each result that no layer takes.
void close(Spec& spec);
std::vector<int> ranks_in(uint32_t mask, int ranks);

// --- Running a program

// "ok VALUES..." of all parameters at the end; or "error STEP TYPE". Then a line for each verdict,
// "KIND CAUSE FILE:LINE RANKS PARAMETERS", with "warning ITERATION" before it for each warning; "planted LINE"
// where the fault was made on this rank; the text of an error behind "| ".
std::string train(const Spec& spec, const dist::ProcessGroupPtr& group);
// The values that all ranks have to end with, from one process.
std::string train_alone(const Spec& spec);

}  // namespace brigade::test::fuzz
