#include "capture.h"

#include <algorithm>
#include <memory>
#include <set>

struct CUgraph_st {
  std::vector<simt::runtime::Node> nodes;
};

struct CUgraphExec_st {
  std::vector<simt::runtime::Node> nodes;
  simt::runtime::Ticket last;  // launches of the same graph run one after another
};

namespace simt::runtime {
namespace {

thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

std::set<cudaGraph_t>& graphs() {
  static auto* const all = new std::set<cudaGraph_t>;
  return *all;
}

std::set<cudaGraphExec_t>& executables() {
  static auto* const all = new std::set<cudaGraphExec_t>;
  return *all;
}

template <class Handle>
cudaError_t destroy(std::set<Handle>& all, Handle handle) {
  if (all.erase(handle) == 0) return set_last_error(cudaErrorInvalidValue);
  delete handle;
  --state().live_handles;
  return cudaSuccess;
}

// Whether the origin's last captured node depends on all captured nodes.
bool joined(const Capture& capture) {
  std::vector<bool> reached(capture.nodes.size(), false);
  for (const size_t node : capture.origin->tail)
    reached[node] = true;
  for (size_t node = capture.nodes.size(); node-- > 0;) {
    if (!reached[node]) continue;
    for (const size_t before : capture.nodes[node].after)
      reached[before] = true;
  }
  const std::vector<StreamPtr>& active = state().active;
  return std::all_of(active.begin(), active.end(), [&](const StreamPtr& stream) {
    return stream->capture.get() != &capture ||
           std::all_of(stream->tail.begin(), stream->tail.end(), [&](size_t node) { return reached[node]; });
  });
}

}  // namespace

cudaError_t capture_command(CUstream_st& stream, Command command) {
  Capture& capture = *stream.capture;
  if (!capture.valid) return cudaErrorStreamCaptureInvalidated;
  capture.nodes.push_back({std::move(command.run), std::move(command.ready), stream.device, stream.tail});
  stream.tail = {capture.nodes.size() - 1};
  return cudaSuccess;
}

cudaError_t refuse_while_capturing(CUstream_st& stream, cudaError_t error) {
  stream.capture->valid = false;
  return error;
}

cudaError_t check_unsafe_call() {
  if (thread_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  for (const StreamPtr& stream : state().active) {
    if (!stream->capture) continue;
    const Capture& capture = *stream->capture;
    const bool own = capture.thread == std::this_thread::get_id();
    const bool forbidden = capture.mode == cudaStreamCaptureModeGlobal
                               ? own || thread_mode == cudaStreamCaptureModeGlobal
                               : capture.mode == cudaStreamCaptureModeThreadLocal && own;
    if (forbidden) return refuse_while_capturing(*stream, cudaErrorStreamCaptureUnsupported);
  }
  return cudaSuccess;
}

}  // namespace simt::runtime

using namespace simt::runtime;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  const Lock held = enter();
  CUstream_st* const stream = find_stream(handle);
  if (stream == nullptr) return set_last_error(cudaErrorInvalidResourceHandle);
  if (stream == state().default_streams[static_cast<size_t>(stream->device)].get())
    return set_last_error(cudaErrorStreamCaptureUnsupported);
  if (stream->capture) return set_last_error(refuse_while_capturing(*stream, cudaErrorIllegalState));
  stream->capture = std::make_shared<Capture>();
  stream->capture->origin = stream;
  stream->capture->mode = mode;
  stream->capture->thread = std::this_thread::get_id();
  stream->capture->id = ++state().ids;
  stream->tail.clear();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  const Lock held = enter();
  *graph = nullptr;
  CUstream_st* const stream = find_stream(handle);
  if (stream == nullptr) return set_last_error(cudaErrorInvalidResourceHandle);
  if (!stream->capture) return set_last_error(cudaErrorIllegalState);
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture->origin != stream)
    return set_last_error(refuse_while_capturing(*stream, cudaErrorStreamCaptureUnmatched));
  if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id())
    return set_last_error(cudaErrorStreamCaptureWrongThread);
  const bool is_joined = joined(*capture);
  for (const StreamPtr& member : state().active) {
    if (member->capture != capture) continue;
    member->capture = nullptr;
    member->tail.clear();
  }
  if (!capture->valid) return set_last_error(cudaErrorStreamCaptureInvalidated);
  if (!is_joined) return set_last_error(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st{std::move(capture->nodes)};
  graphs().insert(*graph);
  ++state().live_handles;
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  const Lock held = enter();
  const CUstream_st* const stream = find_stream(handle);
  if (stream == nullptr) return set_last_error(cudaErrorInvalidResourceHandle);
  if (stream == state().default_streams[static_cast<size_t>(stream->device)].get()) {
    for (const StreamPtr& other : state().active) {
      if (other->device == stream->device && other->blocking && other->capture)
        return set_last_error(cudaErrorStreamCaptureImplicit);
    }
  }
  *status = !stream->capture         ? cudaStreamCaptureStatusNone
            : stream->capture->valid ? cudaStreamCaptureStatusActive
                                     : cudaStreamCaptureStatusInvalidated;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** nodes, const cudaGraphEdgeData**,
                                     size_t*) {
  // Nodes have no handles here, and the graph does not exist before the capture ends.
  if (graph != nullptr || nodes != nullptr) return set_last_error(cudaErrorInvalidValue);
  if (const cudaError_t error = cudaStreamIsCapturing(handle, status); error != cudaSuccess) return error;
  const Lock held = enter();
  if (id != nullptr && *status == cudaStreamCaptureStatusActive) *id = find_stream(handle)->capture->id;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, thread_mode);
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  const Lock held = enter();
  // Nodes have no handles here, so this only counts them.
  if (graphs().count(graph) == 0 || nodes != nullptr) return set_last_error(cudaErrorInvalidValue);
  *count = graph->nodes.size();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  const Lock held = enter();
  if (graphs().count(graph) == 0) return set_last_error(cudaErrorInvalidValue);
  *executable = new CUgraphExec_st{graph->nodes, nullptr};
  executables().insert(*executable);
  ++state().live_handles;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  const Lock held = enter();
  CUstream_st* const stream = find_stream(handle);
  if (stream == nullptr) return set_last_error(cudaErrorInvalidResourceHandle);
  if (executables().count(executable) == 0) return set_last_error(cudaErrorInvalidValue);
  if (stream->capture) return set_last_error(refuse_while_capturing(*stream, cudaErrorStreamCaptureUnsupported));
  // Each node gets its own queue between two empty commands of the stream, so that nodes that the graph does not order
  // run in any order, interleaved with commands of other streams.
  Command begin;
  if (executable->last) begin.after.push_back(executable->last);
  Ticket begun;
  const cudaError_t error = enqueue(*stream, std::move(begin), &begun);
  if (error != cudaSuccess) return set_last_error(error);
  Command end;
  end.after.push_back(begun);
  for (const Node& node : executable->nodes) {
    Command command{.run = node.run, .ready = node.ready, .after = {begun}};
    for (const size_t before : node.after)
      command.after.push_back(end.after[before + 1]);
    end.after.push_back(enqueue_alone(node.device, std::move(command)));
  }
  return set_last_error(enqueue(*stream, std::move(end), &executable->last));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const Lock held = enter();
  return destroy(graphs(), graph);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const Lock held = enter();
  return destroy(executables(), executable);
}

}  // extern "C"
