// The emulated CUDA runtime: streams and events in any legal order, capture and replay, memory, and errors.
#include <doctest/doctest.h>
#include <simt/device.h>
#include <simt/error.h>
#include <simt/launch.h>
#include <simt/options.h>
#include <simt/runtime.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

namespace {

__global__ void scale(const float* x, float factor, float* y, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = factor * x[i];
}

__global__ void fails() { __trap(); }

constexpr int kCount = 1000;
constexpr size_t kBytes = kCount * sizeof(float);

void launch_scale(cudaStream_t stream, const float* x, float factor, float* y) {
  simt::launch("scale", scale, 4, 256, 0, stream, x, factor, y, kCount);
}

void ok(cudaError_t error) { CHECK(std::string(cudaGetErrorName(error)) == "cudaSuccess"); }

// RAII wrappers for the objects of a test.
struct Stream {
  explicit Stream(unsigned flags = cudaStreamNonBlocking) { ok(cudaStreamCreateWithFlags(&handle, flags)); }
  ~Stream() { ok(cudaStreamDestroy(handle)); }
  cudaStream_t handle = nullptr;
};
struct Event {
  explicit Event(unsigned flags = cudaEventDisableTiming) { ok(cudaEventCreateWithFlags(&handle, flags)); }
  ~Event() { ok(cudaEventDestroy(handle)); }
  cudaEvent_t handle = nullptr;
};
struct Floats {
  Floats() { ok(cudaMalloc(reinterpret_cast<void**>(&data), kBytes)); }
  ~Floats() { ok(cudaFree(data)); }
  float* data = nullptr;
};

bool all_equal(const std::vector<float>& x, float value) {
  return std::all_of(x.begin(), x.end(), [=](float element) { return element == value; });
}

std::vector<float> read(const Floats& x) {
  std::vector<float> values(kCount);
  ok(cudaMemcpy(values.data(), x.data, kBytes, cudaMemcpyDeviceToHost));
  return values;
}

// Mimics a reducer: gradients are computed on one stream, reduced on another, and used on the first. Returns whether
// the result is right.
bool overlap(uint64_t seed, bool wait_for_gradient, bool wait_for_reduction) {
  const simt::ScopedOptions scope({.seed = seed});
  const Stream compute, communication;
  const Event computed, reduced;
  const Floats input, gradient, reduction, result;
  const std::vector<float> ones(kCount, 1.0f);
  std::vector<float> found(kCount);
  ok(cudaMemcpyAsync(input.data, ones.data(), kBytes, cudaMemcpyHostToDevice, compute.handle));
  launch_scale(compute.handle, input.data, 3, gradient.data);
  ok(cudaEventRecord(computed.handle, compute.handle));
  if (wait_for_gradient) ok(cudaStreamWaitEvent(communication.handle, computed.handle, 0));
  launch_scale(communication.handle, gradient.data, 2, reduction.data);
  ok(cudaEventRecord(reduced.handle, communication.handle));
  if (wait_for_reduction) ok(cudaStreamWaitEvent(compute.handle, reduced.handle, 0));
  launch_scale(compute.handle, reduction.data, 5, result.data);
  ok(cudaMemcpyAsync(found.data(), result.data, kBytes, cudaMemcpyDeviceToHost, compute.handle));
  ok(cudaStreamSynchronize(compute.handle));
  return all_equal(found, 30);
}

int wrong_of_100(bool wait_for_gradient, bool wait_for_reduction) {
  int wrong = 0;
  for (uint64_t seed = 0; seed < 100; ++seed)
    wrong += overlap(seed, wait_for_gradient, wait_for_reduction) ? 0 : 1;
  return wrong;
}

// The message of the error that a call throws.
template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const simt::Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("two streams with events are right for 100 seeds; with one wait left out they are not") {
  CHECK(wrong_of_100(true, true) == 0);
  CHECK(wrong_of_100(false, true) > 0);
  CHECK(wrong_of_100(true, false) > 0);
  CHECK(simt::live_objects() == 0);
}

TEST_CASE("a seed chooses one order of the streams, and different seeds different ones") {
  const auto order = [](uint64_t seed) {
    const simt::ScopedOptions scope({.seed = seed});
    const Stream streams[4];
    std::string found;
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 4; ++i)
        ok(simt::enqueue(streams[i].handle, [&found, i] { found += static_cast<char>('a' + i); }));
    }
    CHECK(found.empty());
    ok(cudaDeviceSynchronize());
    return found;
  };
  CHECK(order(1).size() == 12);
  CHECK(order(1) == order(1));
  CHECK(order(1) != order(2));
}

TEST_CASE("the default stream waits for blocking streams and they for it; the others do neither") {
  bool blocking_moved = false, free_moved = false;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const simt::ScopedOptions scope({.seed = seed});
    const Stream blocking(cudaStreamDefault), free(cudaStreamNonBlocking);
    std::string found;
    const auto say = [&found](cudaStream_t stream, char letter) {
      ok(simt::enqueue(stream, [&found, letter] { found += letter; }));
    };
    say(blocking.handle, 'a');
    say(nullptr, 'b');
    say(blocking.handle, 'c');
    say(free.handle, 'x');
    ok(cudaDeviceSynchronize());
    const size_t x = found.find('x');
    found.erase(x, 1);
    blocking_moved |= found != "abc";
    free_moved |= x != 3;
  }
  CHECK_FALSE(blocking_moved);
  CHECK(free_moved);
}

TEST_CASE("nothing runs until the host waits or asks; a program that polls comes to its end") {
  const Stream stream;
  const Event event;
  CHECK(cudaEventQuery(event.handle) == cudaSuccess);  // never recorded
  int runs = 0;
  ok(cudaLaunchHostFunc(
      stream.handle, [](void* data) { ++*static_cast<int*>(data); }, &runs));
  ok(cudaEventRecord(event.handle, stream.handle));
  CHECK(runs == 0);
  int questions = 1;
  while (cudaEventQuery(event.handle) == cudaErrorNotReady)
    ++questions;
  CHECK(cudaGetLastError() == (questions > 1 ? cudaErrorNotReady : cudaSuccess));
  CHECK(runs == 1);
  CHECK(questions >= 2);
  CHECK(cudaStreamQuery(stream.handle) == cudaSuccess);
}

TEST_CASE("an event that is recorded again does not change what waits for it already") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const simt::ScopedOptions scope({.seed = seed});
    const Stream first, second;
    const Event event;
    bool first_ran = false, seen = false;
    ok(simt::enqueue(first.handle, [&] { first_ran = true; }));
    ok(cudaEventRecord(event.handle, first.handle));
    ok(cudaStreamWaitEvent(second.handle, event.handle, 0));
    ok(simt::enqueue(second.handle, [&] { seen = first_ran; }));
    ok(cudaEventRecord(event.handle, second.handle));
    ok(cudaEventSynchronize(event.handle));
    CHECK(seen);
  }
}

TEST_CASE("elapsed time is positive, and asked of events with timing only") {
  const Stream stream;
  const Event begin(cudaEventDefault), end(cudaEventDefault), untimed;
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, begin.handle, end.handle) == cudaErrorInvalidResourceHandle);
  for (const Event* event : {&begin, &untimed, &end})
    ok(cudaEventRecord(event->handle, stream.handle));
  CHECK(cudaEventElapsedTime(&milliseconds, begin.handle, end.handle) == cudaErrorNotReady);
  ok(cudaStreamSynchronize(stream.handle));
  ok(cudaEventElapsedTime(&milliseconds, begin.handle, end.handle));
  CHECK(milliseconds > 0);
  CHECK(cudaEventElapsedTime(&milliseconds, begin.handle, untimed.handle) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
}

TEST_CASE("a captured graph of two streams runs as often as it is launched, in legal orders only") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const simt::ScopedOptions scope({.seed = seed});
    const Floats a, b, c, d;
    const std::vector<float> ones(kCount, 1.0f);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    {
      const Stream main, side;
      const Event fork, join;
      ok(cudaMemcpy(a.data, ones.data(), kBytes, cudaMemcpyHostToDevice));
      ok(cudaStreamBeginCapture(main.handle, cudaStreamCaptureModeGlobal));
      launch_scale(main.handle, a.data, 2, b.data);
      ok(cudaEventRecord(fork.handle, main.handle));
      ok(cudaStreamWaitEvent(side.handle, fork.handle, 0));
      launch_scale(side.handle, b.data, 3, c.data);
      launch_scale(main.handle, b.data, 5, d.data);
      ok(cudaEventRecord(join.handle, side.handle));
      ok(cudaStreamWaitEvent(main.handle, join.handle, 0));
      launch_scale(main.handle, c.data, 7, a.data);
      cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
      ok(cudaStreamIsCapturing(side.handle, &status));
      CHECK(status == cudaStreamCaptureStatusActive);
      unsigned long long of_main = 0, of_side = 0, of_none = 0;
      ok(cudaStreamGetCaptureInfo(main.handle, &status, &of_main));
      ok(cudaStreamGetCaptureInfo(side.handle, &status, &of_side));
      CHECK(of_main != 0);
      CHECK(of_side == of_main);
      ok(cudaStreamGetCaptureInfo(nullptr, &status, &of_none));
      CHECK(status == cudaStreamCaptureStatusNone);
      CHECK(of_none == 0);
      ok(cudaStreamEndCapture(main.handle, &graph));
      ok(cudaStreamIsCapturing(side.handle, &status));
      CHECK(status == cudaStreamCaptureStatusNone);
    }
    size_t nodes = 0;
    ok(cudaGraphGetNodes(graph, nullptr, &nodes));
    CHECK(nodes == 4);
    ok(cudaGraphInstantiate(&executable, graph, 0));
    ok(cudaGraphDestroy(graph));
    CHECK(all_equal(read(a), 1));  // captured, not run
    const Stream stream, other;
    ok(cudaGraphLaunch(executable, stream.handle));
    ok(cudaGraphLaunch(executable, other.handle));
    ok(cudaGraphLaunch(executable, stream.handle));
    ok(cudaStreamSynchronize(stream.handle));
    CHECK(all_equal(read(a), 42 * 42 * 42));
    CHECK(all_equal(read(d), 42 * 42 * 10));
    ok(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphExecDestroy(executable) == cudaErrorInvalidValue);
    cudaGetLastError();
  }
  CHECK(simt::live_objects() == 0);
}

TEST_CASE("what capture does not allow breaks it, with the runtime's own error") {
  struct Forbidden {
    const char* what;
    cudaError_t error;
    cudaError_t (*call)(cudaStream_t capturing, cudaStream_t blocking);
  };
  void* address = nullptr;
  static void** const out = &address;
  const Forbidden table[] = {
      {"synchronize", cudaErrorStreamCaptureUnsupported,
       [](cudaStream_t s, cudaStream_t) { return cudaStreamSynchronize(s); }},
      {"query", cudaErrorStreamCaptureUnsupported, [](cudaStream_t s, cudaStream_t) { return cudaStreamQuery(s); }},
      {"device", cudaErrorStreamCaptureUnsupported, [](cudaStream_t, cudaStream_t) { return cudaDeviceSynchronize(); }},
      {"malloc", cudaErrorStreamCaptureUnsupported, [](cudaStream_t, cudaStream_t) { return cudaMalloc(out, 16); }},
      {"default stream", cudaErrorStreamCaptureImplicit,
       [](cudaStream_t, cudaStream_t) { return simt::enqueue(nullptr, [] {}); }},
  };
  for (const Forbidden& forbidden : table) {
    CAPTURE(forbidden.what);
    const Stream stream(cudaStreamDefault), other;
    ok(cudaStreamBeginCapture(stream.handle, cudaStreamCaptureModeGlobal));
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    CHECK(cudaStreamIsCapturing(nullptr, &status) == cudaErrorStreamCaptureImplicit);
    CHECK(cudaGetErrorName(forbidden.call(stream.handle, other.handle)) ==
          std::string(cudaGetErrorName(forbidden.error)));
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(stream.handle, &graph) == cudaErrorStreamCaptureInvalidated);
    CHECK(graph == nullptr);
    cudaGetLastError();
  }
  // In relaxed mode, memory may be allocated.
  const Stream stream, other;
  ok(cudaStreamBeginCapture(stream.handle, cudaStreamCaptureModeRelaxed));
  ok(cudaMalloc(out, 16));
  cudaGraph_t graph = nullptr;
  ok(cudaStreamEndCapture(stream.handle, &graph));
  ok(cudaFree(address));
  ok(cudaGraphDestroy(graph));
  // A stream that joined the capture must join back into the origin.
  const Event event;
  ok(cudaStreamBeginCapture(stream.handle, cudaStreamCaptureModeGlobal));
  ok(cudaEventRecord(event.handle, stream.handle));
  ok(cudaStreamWaitEvent(other.handle, event.handle, 0));
  ok(simt::enqueue(other.handle, [] {}));
  CHECK(cudaEventSynchronize(event.handle) == cudaErrorCapturedEvent);
  CHECK(cudaStreamEndCapture(stream.handle, &graph) == cudaErrorStreamCaptureUnjoined);
  // An event recorded before the capture is not part of it.
  ok(cudaEventRecord(event.handle, other.handle));
  ok(cudaStreamBeginCapture(stream.handle, cudaStreamCaptureModeGlobal));
  CHECK(cudaStreamWaitEvent(stream.handle, event.handle, 0) == cudaErrorStreamCaptureIsolation);
  CHECK(cudaStreamEndCapture(stream.handle, &graph) == cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
}

TEST_CASE("device memory ends, per device, and comes back") {
  simt::set_device_memory(0, 10000);
  size_t free_bytes = 0, total_bytes = 0;
  void *first = nullptr, *second = nullptr;
  ok(cudaMalloc(&first, 6000));
  ok(cudaMemGetInfo(&free_bytes, &total_bytes));
  CHECK(free_bytes == 4000);
  CHECK(total_bytes == 10000);
  CHECK(cudaMalloc(&second, 4001) == cudaErrorMemoryAllocation);
  CHECK(second == nullptr);
  CHECK(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaSuccess);
  ok(cudaMalloc(&second, 4000));
  CHECK(simt::allocated_bytes(0) == 10000);
  ok(cudaFree(second));
  ok(cudaSetDevice(1));
  ok(cudaMalloc(&second, 4001));
  CHECK(simt::allocated_bytes(1) == 4001);
  cudaDeviceProp properties;
  ok(cudaGetDeviceProperties(&properties, 0));
  CHECK(properties.totalGlobalMem == 10000);
  ok(cudaFree(first));
  ok(cudaFree(second));
  ok(cudaSetDevice(0));
  simt::set_device_memory(0, size_t{1} << 30);
}

TEST_CASE("device memory starts as NaN; pinned and device addresses are known, also inside of an allocation") {
  const Floats x;
  const std::vector<float> values = read(x);
  CHECK(std::all_of(values.begin(), values.end(), [](float value) { return std::isnan(value); }));
  CHECK(reinterpret_cast<uintptr_t>(x.data) % 256 == 0);
  void* pinned = nullptr;
  ok(cudaMallocHost(&pinned, 100));
  cudaPointerAttributes attributes;
  ok(cudaPointerGetAttributes(&attributes, x.data + 5));
  CHECK(attributes.type == cudaMemoryTypeDevice);
  CHECK(attributes.device == 0);
  ok(cudaPointerGetAttributes(&attributes, static_cast<char*>(pinned) + 99));
  CHECK(attributes.type == cudaMemoryTypeHost);
  ok(cudaPointerGetAttributes(&attributes, static_cast<char*>(pinned) + 100));
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
  ok(cudaFreeHost(pinned));
}

TEST_CASE("copies and fills, of rows as well") {
  const Stream stream;
  const Floats x, y;
  ok(cudaMemsetAsync(x.data, 0, kBytes, stream.handle));
  ok(cudaStreamSynchronize(stream.handle));
  CHECK(all_equal(read(x), 0));
  std::vector<float> values(kCount);
  for (int i = 0; i < kCount; ++i)
    values[i] = static_cast<float>(i);
  ok(cudaMemcpy(x.data, values.data(), kBytes, cudaMemcpyHostToDevice));
  ok(cudaMemcpy(y.data, x.data, kBytes, cudaMemcpyDeviceToDevice));
  CHECK(read(y) == values);
  // Columns 0 to 4 of 100 rows of 10, packed.
  ok(cudaMemcpy2DAsync(y.data, 20, x.data, 40, 20, 100, cudaMemcpyDeviceToDevice, stream.handle));
  ok(cudaStreamSynchronize(stream.handle));
  const std::vector<float> packed = read(y);
  for (int i = 0; i < 500; ++i)
    CHECK(packed[i] == static_cast<float>(i / 5 * 10 + i % 5));
}

TEST_CASE("copies and fills that are queued are known by what they read and write, until they have run") {
  const Stream stream;
  const Floats a, b;
  const auto copies = [](const float* x, size_t bytes) {
    const simt::QueuedCopies found = simt::queued_copies(x, bytes);
    return std::array<size_t, 2>{found.reads, found.writes};
  };
  ok(cudaMemcpyAsync(a.data + 10, b.data, 100 * sizeof(float), cudaMemcpyDeviceToDevice, stream.handle));
  ok(cudaMemsetAsync(b.data, 0, 4, stream.handle));
  CHECK(copies(a.data, kBytes) == std::array<size_t, 2>{0, 1});
  CHECK(copies(b.data, kBytes) == std::array<size_t, 2>{1, 1});
  CHECK(copies(a.data, 10 * sizeof(float)) == std::array<size_t, 2>{0, 0});
  CHECK(copies(a.data + 109, 4) == std::array<size_t, 2>{0, 1});
  CHECK(copies(a.data + 110, 4) == std::array<size_t, 2>{0, 0});
  CHECK(copies(b.data + 1, 4) == std::array<size_t, 2>{1, 0});
  ok(cudaStreamSynchronize(stream.handle));
  CHECK(copies(a.data, kBytes) == std::array<size_t, 2>{0, 0});
  CHECK(copies(b.data, kBytes) == std::array<size_t, 2>{0, 0});
}

TEST_CASE(
    "a thread gets a context on the device that it chooses, else on the first, and queries of events are counted") {
  const auto contexts = [] {
    std::array<size_t, simt::kDevices> all{};
    for (int device = 0; device < simt::kDevices; ++device)
      all[static_cast<size_t>(device)] = simt::threads_with_context(device);
    return all;
  };
  const auto before = contexts();
  // Calls that only query devices need no context.
  std::thread([] {
    int device = -1;
    cudaDeviceProp properties;
    ok(cudaGetDevice(&device));
    ok(cudaGetDeviceProperties(&properties, 2));
  }).join();
  CHECK(contexts() == before);
  std::thread([] {
    ok(cudaSetDevice(2));
    ok(cudaSetDevice(2));
    ok(cudaDeviceSynchronize());
  }).join();
  auto expected = before;
  ++expected[2];
  CHECK(contexts() == expected);
  const Event event;
  const size_t queries = simt::event_queries();
  std::thread([&] { ok(cudaEventQuery(event.handle)); }).join();
  ++expected[0];
  CHECK(contexts() == expected);
  CHECK(simt::event_queries() == queries + 1);
}

TEST_CASE("mistakes return the errors that CUDA returns") {
  float host[4] = {};
  float* device = nullptr;
  void* const out = &device;
  ok(cudaMalloc(static_cast<void**>(out), 16));
  CHECK(cudaMemcpy(device, host, 17, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(host, device, 16, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemset(host, 0, 16) == cudaErrorInvalidValue);
  CHECK(cudaFreeHost(device) == cudaErrorInvalidValue);
  CHECK(cudaFree(device + 1) == cudaErrorInvalidValue);
  ok(cudaFree(device));
  CHECK(cudaFree(device) == cudaErrorInvalidValue);
  ok(cudaFree(nullptr));
  CHECK(cudaSetDevice(4) == cudaErrorInvalidDevice);

  cudaStream_t stream = nullptr;
  ok(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -5));
  int priority = 0;
  ok(cudaStreamGetPriority(stream, &priority));
  CHECK(priority == -5);
  int runs = 0;
  ok(simt::enqueue(stream, [&] { ++runs; }));
  ok(cudaStreamDestroy(stream));  // queued commands still run
  CHECK(cudaStreamSynchronize(stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaStreamDestroy(stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaMemsetAsync(host, 0, 4, stream) == cudaErrorInvalidValue);
  CHECK(error_of([&] { launch_scale(stream, host, 1, host); }).find("cudaErrorInvalidResourceHandle") !=
        std::string::npos);
  ok(cudaDeviceSynchronize());
  CHECK(runs == 1);

  cudaEvent_t event = nullptr;
  ok(cudaEventCreate(&event));
  ok(cudaSetDevice(1));
  CHECK(cudaEventRecord(event, nullptr) == cudaErrorInvalidResourceHandle);  // an event of another device
  ok(cudaSetDevice(0));
  ok(cudaEventDestroy(event));
  CHECK(cudaEventRecord(event, nullptr) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventDestroy(event) == cudaErrorInvalidResourceHandle);
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  CHECK(std::string(cudaGetErrorString(cudaErrorMemoryAllocation)) == "out of memory");
  CHECK(std::string(cudaGetErrorName(static_cast<cudaError_t>(12345))) == "unrecognized error code");
  CHECK(simt::live_objects() == 0);
}

TEST_CASE("a kernel that fails is reported by the next call that waits, once, and only on its device") {
  const Stream stream;
  int runs = 0;
  simt::launch("fails", fails, 1, 1, 0, stream.handle);
  ok(simt::enqueue(stream.handle, [&] { ++runs; }));
  CHECK(cudaGetLastError() == cudaSuccess);
  ok(cudaSetDevice(1));
  const Stream elsewhere;
  ok(simt::enqueue(elsewhere.handle, [&] { runs += 10; }));
  ok(cudaDeviceSynchronize());
  ok(cudaSetDevice(0));
  const std::string text = error_of([&] { cudaStreamSynchronize(stream.handle); });
  CHECK(text.find("kernel fails, thread (0,0,0) of block (0,0,0), runtime_test.cpp:") != std::string::npos);
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(runs == 10);  // the command queued after the failed kernel is lost
  ok(simt::enqueue(stream.handle, [&] { ++runs; }));
  ok(cudaStreamSynchronize(stream.handle));
  CHECK(runs == 11);
}

TEST_CASE("a call that waits in vain throws, and what is queued on its device is lost: it writes nothing later") {
  const simt::ScopedOptions impatient({.patience = std::chrono::milliseconds(50)});
  const Stream stream, elsewhere;
  const Floats x;
  std::vector<float> host(kCount, 7.0f);
  bool released = false;
  int ran_elsewhere = 0;
  ok(cudaMemset(x.data, 0, kBytes));
  ok(cudaDeviceSynchronize());
  ok(simt::enqueue(
      stream.handle, [] {}, [&] { return released; }));
  ok(cudaMemcpyAsync(host.data(), x.data, kBytes, cudaMemcpyDeviceToHost, stream.handle));
  ok(cudaSetDevice(1));
  cudaStream_t other = nullptr;
  ok(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  ok(simt::enqueue(
      other, [&] { ++ran_elsewhere; }, [&] { return released; }));
  ok(cudaSetDevice(0));
  const std::string text = error_of([&] { cudaStreamSynchronize(stream.handle); });
  CHECK_MESSAGE(text.find("streams stalled") != std::string::npos, text);
  CHECK_MESSAGE(text.find("for 50 ms; what is queued on device 0 is lost") != std::string::npos, text);
  released = true;
  ok(cudaStreamSynchronize(stream.handle));  // its queue is empty
  CHECK(all_equal(host, 7));
  ok(cudaStreamSynchronize(other));  // nothing is lost on the other device
  CHECK(ran_elsewhere == 1);
  ok(cudaStreamDestroy(other));
}

TEST_CASE("a command that takes long is waited for, and what fails is thrown when nothing runs on the device") {
  const simt::ScopedOptions impatient({.patience = std::chrono::milliseconds(20)});
  const Stream slow, stream;
  std::atomic<bool> begun = false, ended = false;
  ok(simt::enqueue(slow.handle, [&] {
    begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ended = true;
  }));
  std::thread other([&] { ok(cudaStreamSynchronize(slow.handle)); });
  while (!begun)
    std::this_thread::yield();
  SUBCASE("waited for by another thread") { ok(cudaDeviceSynchronize()); }
  SUBCASE("beside a kernel that fails") {
    simt::launch("fails", fails, 1, 1, 0, stream.handle);
    CHECK(error_of([&] { cudaStreamSynchronize(stream.handle); }).find("kernel fails") != std::string::npos);
    cudaGetLastError();
  }
  CHECK(ended);
  other.join();
}

TEST_CASE("a collective runs once all ranks have queued their part, whoever drains; the ranks are threads") {
  constexpr int kRanks = 4;
  std::atomic<int> arrived = 0;
  std::atomic<int> sum = 0;
  std::vector<std::thread> ranks;
  std::vector<int> seen(kRanks, 0);
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      cudaSetDevice(rank % simt::kDevices);
      cudaStream_t stream = nullptr;
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      simt::enqueue(stream, [&, rank] {
        sum += rank + 1;
        ++arrived;
      });
      simt::enqueue(
          stream, [&, rank] { seen[static_cast<size_t>(rank)] = sum; }, [&] { return arrived == kRanks; });
      cudaStreamSynchronize(stream);
      cudaStreamDestroy(stream);
    });
  }
  for (std::thread& rank : ranks)
    rank.join();
  CHECK(seen == std::vector<int>(kRanks, 10));
}

TEST_CASE("four devices of capability 9.0 and the versions of the headers") {
  int count = 0, version = 0;
  ok(cudaGetDeviceCount(&count));
  CHECK(count == 4);
  ok(cudaRuntimeGetVersion(&version));
  CHECK(version == CUDART_VERSION);
  ok(cudaDriverGetVersion(&version));
  CHECK(version == CUDART_VERSION);
  cudaDeviceProp properties;
  ok(cudaGetDeviceProperties(&properties, 1));
  CHECK(properties.major == 9);
  CHECK(std::string(properties.name) == "Emulated device 1");
  int value = 0;
  ok(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  CHECK(value == 227 * 1024);
  CHECK(cudaGetDeviceProperties(&properties, 4) == cudaErrorInvalidDevice);
  cudaGetLastError();
}
