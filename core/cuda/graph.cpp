// A capture advances the generators as the step does; that is undone afterwards, since nothing ran.
// The numbers that the step reserved refer to two words of device memory (PhiloxReplay), in which a
// replay writes how far its generator has moved since the capture.
#include <brigade/core/cuda/graph.h>

#include <brigade/core/cuda/allocator.h>
#include <brigade/core/cuda/detail/capture.h>
#include <brigade/core/cuda/device.h>
#include <brigade/core/cuda/error.h>

#include <exception>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace brigade::cuda {
namespace {

// The Graph that this thread captures; at most one per thread.
thread_local const Graph* capturing = nullptr;

// Reused, so that graphs that share a pool find each other's blocks, which are bound to a stream.
Stream capture_stream(int device) {
  thread_local std::map<int, Stream> streams;
  const auto found = streams.find(device);
  return found != streams.end() ? found->second : streams.emplace(device, Stream::create()).first->second;
}

// A generator that captured kernels draw from.
struct RandomSource {
  RandomGenerator* registered;  // null: that of the thread
  RandomGenerator before{};     // as it stood when the capture began
  uint64_t drawn = 0;           // by the capture

  RandomGenerator& generator() const noexcept { return registered ? *registered : default_generator(); }
};

}  // namespace

struct Graph::State {
  int device = -1;
  std::optional<Stream> stream;  // while it captures
  detail::CaptureId capture = 0;
  MemPoolId pool = 0;
  cudaGraphExec_t executable = nullptr;
  size_t nodes = 0;
  Event replayed;
  std::vector<RandomSource> sources{{nullptr}};
  std::map<const void*, ReplayHook> hooks;  // by owner
  Allocation words;                         // a PhiloxReplay for each source

  const PhiloxReplay* words_of(const RandomSource& source) const noexcept {
    return static_cast<const PhiloxReplay*>(words.data) + (&source - sources.data());
  }
  size_t words_bytes() const noexcept { return sources.size() * sizeof(PhiloxReplay); }

  void begin(const Stream& on, MemPoolId from);
  cudaError_t stop(cudaGraph_t* graph) noexcept;
  cudaGraph_t end();
  void instantiate(cudaGraph_t graph);
  void write_words(const Stream& on);
  void release();
};

void Graph::State::begin(const Stream& on, MemPoolId from) {
  device = on.device();
  for (RandomSource& source : sources)
    source.before = source.generator();
  detail::retain_pool(from);
  pool = from;
  check(cudaStreamBeginCapture(on.get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  stream = on;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamGetCaptureInfo(on.get(), &status, &capture), "cudaStreamGetCaptureInfo");
  detail::capture_began(capture, pool);
  words = allocate(words_bytes(), device);
  for (RandomSource& source : sources)
    source.generator().set_replay(words_of(source));
}

// Ends the capture of the stream, and restores the generators.
cudaError_t Graph::State::stop(cudaGraph_t* graph) noexcept {
  *graph = nullptr;
  const cudaError_t code = cudaStreamEndCapture(stream->get(), graph);
  detail::capture_ended(capture);
  stream.reset();
  for (RandomSource& source : sources)
    source.generator() = source.before;
  return code;
}

cudaGraph_t Graph::State::end() {
  bool lost = false;
  for (RandomSource& source : sources) {
    const RandomGenerator& generator = source.generator();
    lost = lost || generator.replay() != words_of(source) || generator.offset() < source.before.offset();
    source.drawn = generator.offset() - source.before.offset();
  }
  cudaGraph_t graph = nullptr;
  const cudaError_t code = stop(&graph);
  if (code == cudaSuccess && !lost) return graph;
  if (graph) cudaGraphDestroy(graph);
  release();
  check(code, "cudaStreamEndCapture");
  throw DeviceError(
      "capture_end: a generator was seeded, replaced or set back while the graph was captured, so that replays could "
      "not go on from it: seed it before the capture or between replays");
}

void Graph::State::instantiate(cudaGraph_t graph) {
  cudaError_t code = cudaGraphGetNodes(graph, nullptr, &nodes);
  if (code == cudaSuccess) code = cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphDestroy(graph);
  if (code != cudaSuccess) {
    executable = nullptr;
    release();
    check(code, "cudaGraphInstantiate");
  }
}

// Ordered after the previous replay, which may be on another stream; the copy comes from
// page-locked memory, so the host does not wait.
void Graph::State::write_words(const Stream& on) {
  replayed.block(on);
  const Allocation staged = pinned_allocate(words_bytes());
  for (size_t i = 0; i < sources.size(); ++i) {
    RandomGenerator& generator = sources[i].generator();
    static_cast<PhiloxReplay*>(staged.data)[i] = {generator.seed(), generator.offset() - sources[i].before.offset()};
    generator.set_offset(generator.offset() + sources[i].drawn);
  }
  const cudaError_t code = cudaMemcpyAsync(words.data, staged.data, words_bytes(), cudaMemcpyHostToDevice, on.get());
  if (code == cudaSuccess) record_pinned(staged.data, on);
  staged.deleter(staged.data, staged.context, words_bytes());
  check(code, "cudaMemcpyAsync");
}

// Back to the initial state, except for the registered generators. Frees everything, even if the last replay failed.
void Graph::State::release() {
  const detail::AllowUnsafeCalls allow;
  std::exception_ptr failure;
  try {
    replayed.synchronize();
  } catch (...) {
    failure = std::current_exception();
  }
  replayed = Event();
  if (executable) cudaGraphExecDestroy(std::exchange(executable, nullptr));
  nodes = 0;
  hooks.clear();
  if (words.deleter) words.deleter(words.data, words.context, words_bytes());
  words = {};
  detail::release_pinned(std::exchange(capture, 0));
  if (pool != 0) detail::release_pool(std::exchange(pool, 0));
  if (failure) std::rethrow_exception(failure);
}

Graph::Graph() : state_(std::make_unique<State>()) {}

Graph::~Graph() {
  try {
    reset();
  } catch (...) {
    // A replay failed, or the driver is gone: the next call reports it.
  }
}

void Graph::capture(const std::function<void()>& step, MemPoolId pool) {
  check_may_begin();
  const StreamGuard guard(capture_stream(current_device()));
  capture_begin(pool);
  try {
    step();
  } catch (...) {
    reset();
    throw;
  }
  capture_end();
}

void Graph::check_may_begin() const {
  if (capturing == this) throw DeviceError("capture_begin: this graph is being captured already");
  if (capturing) {
    throw DeviceError(
        "capture_begin: this thread is capturing another graph, and captures cannot be nested: end that one first");
  }
  if (state_->stream) throw DeviceError("capture_begin: another thread is capturing this graph");
  if (state_->executable)
    throw DeviceError("capture_begin: this graph holds a capture already: make another one, or call reset() first");
}

void Graph::capture_begin(MemPoolId pool) {
  check_may_begin();
  const Stream stream = current_stream();
  if (stream.get() == nullptr || stream.get() == cudaStreamLegacy || stream.get() == cudaStreamPerThread) {
    throw DeviceError(
        "capture_begin: the current stream is the default stream, which cannot be captured: make another one current "
        "(StreamGuard), or use capture(), which does");
  }
  capturing = this;
  try {
    state_->begin(stream, pool != 0 ? pool : new_mem_pool());
  } catch (...) {
    reset();
    throw;
  }
}

void Graph::capture_end() {
  if (!state_->stream) throw DeviceError("capture_end: no capture of this graph has begun");
  if (capturing != this) throw DeviceError("capture_end: the capture was begun by another thread, which has to end it");
  capturing = nullptr;
  state_->instantiate(state_->end());
}

void Graph::replay(std::source_location where) {
  if (!state_->executable)
    throw DeviceError(state_->stream ? "replay: the graph is still being captured: call capture_end() first"
                                     : "replay: nothing was captured: call capture() first");
  const DeviceGuard guard(state_->device);
  const Stream stream = current_stream(state_->device);
  if (detail::capture_of(stream.get()) != 0)
    throw DeviceError("replay: the current stream is being captured: a graph cannot be a part of another one");
  std::vector<std::function<void()>> when_queued;
  for (const auto& [owner, hook] : state_->hooks)
    when_queued.push_back(hook());
  bool random = false;
  for (const RandomSource& source : state_->sources)
    random = random || source.drawn > 0;
  if (random) state_->write_words(stream);
  note_launch("a replayed graph", where);
  check(cudaGraphLaunch(state_->executable, stream.get()), "cudaGraphLaunch");
  state_->replayed.record(stream);
  for (const auto& call : when_queued)
    call();
}

void detail::on_replay(const void* owner, const ReplayHook& hook) {
  if (capturing) capturing->state_->hooks.insert_or_assign(owner, hook);
}

void Graph::reset() {
  if (state_->stream && capturing != this)
    throw DeviceError("reset: another thread is capturing this graph: end the capture there first");
  if (capturing == this) capturing = nullptr;
  if (state_->stream) {
    cudaGraph_t graph = nullptr;
    if (state_->stop(&graph) != cudaSuccess) cudaGetLastError();
    if (graph) cudaGraphDestroy(graph);
  }
  state_->release();
}

MemPoolId Graph::pool() const noexcept { return state_->pool; }
size_t Graph::nodes() const noexcept { return state_->nodes; }

void Graph::register_generator(RandomGenerator& generator) {
  if (state_->stream || state_->executable)
    throw DeviceError("register_generator: the graph is captured already: register generators before");
  for (const RandomSource& source : state_->sources) {
    if (source.registered == &generator) return;
  }
  state_->sources.push_back({&generator});
}

}  // namespace brigade::cuda
