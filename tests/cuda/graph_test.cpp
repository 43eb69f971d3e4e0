// CUDA graphs: capture and replay, random numbers, and operations that a capture rejects.
#include "device_memory.h"

#include <brigade/core/cuda/allocator.h>
#include <brigade/core/cuda/device.h>
#include <brigade/core/cuda/error.h>
#include <brigade/core/cuda/graph.h>
#include <brigade/kernels/activation.h>
#include <brigade/kernels/optimizer.h>
#include <brigade/kernels/reduce.h>

#include <atomic>
#include <stdexcept>
#include <thread>

namespace brigade::test::graph_test {
using kernels::BinaryOp;

namespace {

// A small training step: y = dropout(relu(x * w)), loss = sum((y - target)^2), SGD with momentum.
struct Training {
  Tensor x = on_device(zeros({33, 70}));
  Tensor target = on_device(numbers({33, 70}, kFloat32, 2));
  Tensor w = on_device(numbers({70}, kFloat32, 3));
  Tensor momentum = on_device(zeros({70}));
  Tensor loss = on_device(zeros({1}));

  void step() const {
    const Tensor h = kernels::relu(kernels::binary(x, w, BinaryOp::Mul));
    const PhiloxState state = default_generator().reserve(static_cast<uint64_t>(h.numel()));
    const Tensor difference = kernels::binary(kernels::dropout(h, 0.3, state), target, BinaryOp::Sub);
    kernels::copy(loss, kernels::sum(kernels::binary(difference, difference, BinaryOp::Mul), {.dims = {0, 1}}));
    const Tensor noise = empty(h.sizes(), h.options());
    kernels::fill_normal(noise, default_generator().reserve(static_cast<uint64_t>(h.numel())), 0, 0.01);
    kernels::add_inplace(difference, noise, 1);
    const Tensor grad = kernels::relu_backward(kernels::dropout(difference, 0.3, state), h);
    const Tensor grad_w = kernels::sum(kernels::binary(grad, x, BinaryOp::Mul), {.dims = {0}});
    kernels::sgd_step(w, grad_w, momentum, {1e-3, 0.9, 0, 1e-4, false, false, false});
  }
  void set_input(uint64_t i) const { kernels::copy(x, numbers({33, 70}, kFloat32, 10 + i)); }
};

}  // namespace

TEST_CASE("a captured step does, replay by replay, what it does by itself") {
  manual_seed(7);
  const Training plain;
  std::vector<float> losses;
  for (uint64_t i = 0; i < 6; ++i) {
    plain.set_input(i);
    plain.step();
    losses.push_back(values(plain.loss)[0]);
  }
  const uint64_t offset = default_generator().offset();

  manual_seed(7);
  const Training captured;
  captured.set_input(0);
  captured.step();
  const std::vector<float> weights = values(captured.w);
  const uint64_t before = default_generator().offset();
  cuda::Graph graph;
  CHECK(graph.nodes() == 0);
  graph.capture([&] { captured.step(); });
  CHECK(graph.nodes() >= 10);
  CHECK(default_generator().offset() == before);
  CHECK(values(captured.w) == weights);  // a capture runs nothing
  for (uint64_t i = 1; i < 6; ++i) {
    captured.set_input(i);
    if (i == 3) {
      captured.step();  // an eager step between replays, from the same generator
    } else {
      graph.replay();
    }
    CHECK(values(captured.loss)[0] == losses[i]);
  }
  CHECK(default_generator().offset() == offset);
  CHECK(values(captured.w) == values(plain.w));
  CHECK(values(captured.momentum) == values(plain.momentum));
}

TEST_CASE("replays draw from the generator's present seed and position; others have to be registered") {
  const auto draw = [](const Tensor& out, RandomGenerator& generator) {
    kernels::fill_uniform(out, generator.reserve(static_cast<uint64_t>(out.numel())), 0, 1);
  };
  RandomGenerator own(5);
  const Tensor a = filled(1001, 0), b = filled(1001, 0), again = filled(1001, 0), expected = empty({1001});
  cuda::Graph graph;
  graph.register_generator(own);
  graph.register_generator(own);
  manual_seed(3);
  graph.capture([&] {
    // As in activation checkpointing: the generator is rewound temporarily, and the numbers repeat.
    const RandomGenerator start = default_generator();
    draw(a, default_generator());
    const RandomGenerator now = default_generator();
    default_generator() = start;
    draw(again, default_generator());
    default_generator() = now;
    draw(b, own);
  });
  CHECK_THROWS_WITH_AS(graph.register_generator(own), doctest::Contains("is captured already"), DeviceError);
  for (const uint64_t seed : {uint64_t{3}, uint64_t{3}, uint64_t{1234567890123}}) {
    if (seed != 3) manual_seed(seed);
    RandomGenerator reference = default_generator();
    RandomGenerator own_reference = own;
    graph.replay();
    draw(expected, reference);
    CHECK(difference(a, expected) == 0);
    CHECK(difference(again, expected) == 0);
    draw(expected, own_reference);
    CHECK(difference(b, expected) == 0);
    CHECK(default_generator().offset() == reference.offset());
    CHECK(own.offset() == own_reference.offset());
  }
  // Numbers come from the generator of the replaying thread.
  std::thread([&] {
    manual_seed(99);
    graph.replay();
    cuda::synchronize();
  }).join();
  draw(expected, *std::make_unique<RandomGenerator>(99));
  CHECK(difference(a, expected) == 0);
}

TEST_CASE("replays on several streams run one after the other, each with its own numbers") {
  const Tensor sum = filled(300, 0);
  manual_seed(11);
  cuda::Graph graph;
  graph.capture([&] {
    const Tensor x = empty({300}, {kFloat32, kDevice});
    kernels::fill_uniform(x, default_generator().reserve(300), 0, 1);
    kernels::add_inplace(sum, x, 1);
  });
  const Tensor expected = zeros({300});
  RandomGenerator reference = default_generator();
  cuda::synchronize();
  const cuda::Stream streams[] = {cuda::Stream::create(), cuda::Stream::create(), cuda::Stream::create()};
  for (int i = 0; i < 40; ++i) {
    const cuda::StreamGuard guard(streams[i % 3]);
    graph.replay();
    const Tensor x = empty({300});
    kernels::fill_uniform(x, reference.reserve(300), 0, 1);
    kernels::add_inplace(expected, x, 1);
  }
  cuda::synchronize();
  CHECK(difference(sum, expected) == 0);
}

TEST_CASE("an exception in the step ends the capture: streams, memory and random numbers are as before") {
  start_afresh();
  const cuda::Stream side = cuda::Stream::create();
  const Tensor x = filled(1000, 1);
  cuda::synchronize();
  const uint64_t reserved = cuda::allocator_stats(0).bytes_reserved;
  const uint64_t offset = default_generator().offset();
  cuda::Graph graph;
  const auto failing = [&](bool forked) {
    const Tensor y = kernels::unary(x, kernels::UnaryOp::Exp);
    default_generator().reserve(1000);
    if (forked) {
      cuda::Event fork;
      fork.record(cuda::current_stream());
      fork.block(side);
      const cuda::StreamGuard guard(side);
      kernels::fill(y, 2);
    }
    throw std::runtime_error("no such file");
  };
  for (const bool forked : {false, true, false}) {
    CHECK_THROWS_WITH_AS(graph.capture([&] { failing(forked); }), "no such file", std::runtime_error);
    CHECK(cuda::current_stream() == cuda::Stream::default_stream(0));
    CHECK(side.query());
    CHECK(cuda::allocator_stats(0).bytes_reserved == reserved);
    CHECK(default_generator().offset() == offset);
    CHECK(default_generator().replay() == nullptr);
    CHECK(graph.nodes() == 0);
    CHECK_THROWS_WITH_AS(graph.replay(), doctest::Contains("nothing was captured"), DeviceError);
  }
  graph.capture([&] { kernels::fill(x, 6); });
  graph.replay();
  CHECK(values(x) == std::vector<float>(1000, 6));
  // A graph that is destroyed during its capture ends the capture.
  {
    const cuda::StreamGuard guard(side);
    cuda::Graph unfinished;
    unfinished.capture_begin();
    kernels::fill(x, 7);
  }
  side.synchronize();
  CHECK(values(x) == std::vector<float>(1000, 6));
}

TEST_CASE("waiting for the device inside of a capture is an error that says so") {
  const Tensor x = filled(10, 1);
  cuda::Graph graph;
  const char* const reason = "a CUDA graph is being captured, and nothing may wait for the device meanwhile";
  CHECK_THROWS_WITH_AS(graph.capture([&] { cuda::current_stream().synchronize(); }), doctest::Contains(reason),
                       cuda::CudaError);
  CHECK_THROWS_WITH_AS(graph.capture([&] { cuda::synchronize(); }), doctest::Contains(reason), cuda::CudaError);
  CHECK_THROWS_WITH_AS(graph.capture([&] { values(x); }), doctest::Contains(reason), cuda::CudaError);
  // An error that the step swallows is reported when the capture ends.
  CHECK_THROWS_WITH_AS(graph.capture([&] {
    try {
      cuda::synchronize();
    } catch (const cuda::CudaError&) {
      const Tensor more = empty({10}, {kFloat32, kDevice});
    }
  }),
                       doctest::Contains("an earlier call broke the capture"), cuda::CudaError);
  // Memory freed during a broken capture is not lost, either.
  const uint64_t in_use = cuda::allocator_stats(0).blocks.bytes_in_use;
  Tensor more = filled(3 << 20, 1);
  CHECK_THROWS_AS(graph.capture([&] {
    cuda::record_stream(more.raw_data(), cuda::current_stream());
    CHECK_THROWS_AS(cuda::synchronize(), cuda::CudaError);
    more = Tensor();
  }),
                  cuda::CudaError);
  for (int i = 0; i < 2; ++i) {
    cuda::empty_cache();
    cuda::synchronize();
  }
  cuda::empty_cache();
  CHECK(cuda::allocator_stats(0).blocks.bytes_in_use == in_use);
  CHECK(cuda::allocator_stats(0).bytes_reserved < (size_t{12} << 20));
  cuda::Event outside;
  outside.record(cuda::current_stream());
  CHECK_THROWS_WITH_AS(graph.capture([&] { outside.block(cuda::current_stream()); }),
                       doctest::Contains("recorded outside of the capture"), cuda::CudaError);
  const cuda::Stream side = cuda::Stream::create();
  cuda::Event fork;
  CHECK_THROWS_WITH_AS(graph.capture([&] {
    fork.record(cuda::current_stream());
    fork.query();
  }),
                       doctest::Contains("was recorded in the capture"), cuda::CudaError);
  CHECK_THROWS_WITH_AS(graph.capture([&] {
    fork.record(cuda::current_stream());
    fork.block(side);
    const cuda::StreamGuard guard(side);
    kernels::fill(x, 2);
  }),
                       doctest::Contains("did not wait for it in the end"), cuda::CudaError);
  CHECK(values(x) == std::vector<float>(10, 1));
}

TEST_CASE("misuse of a graph is an error in words, and harms no capture") {
  const Tensor x = filled(10, 1);
  const auto contains = [](const char* text) { return doctest::Contains(text); };
  cuda::Graph graph, other;
  CHECK_THROWS_WITH_AS(graph.replay(), contains("nothing was captured: call capture() first"), DeviceError);
  CHECK_THROWS_WITH_AS(graph.capture_end(), contains("no capture of this graph has begun"), DeviceError);
  CHECK_THROWS_WITH_AS(graph.capture_begin(), contains("the default stream, which cannot be captured"), DeviceError);
  other.capture([&] { kernels::scale_inplace(x, 10); });
  graph.capture([&] {
    CHECK_THROWS_WITH_AS(graph.capture_begin(), contains("this graph is being captured already"), DeviceError);
    CHECK_THROWS_WITH_AS(other.capture([] {}), contains("captures cannot be nested"), DeviceError);
    CHECK_THROWS_WITH_AS(graph.replay(), contains("still being captured"), DeviceError);
    CHECK_THROWS_WITH_AS(other.replay(), contains("cannot be a part of another one"), DeviceError);
    std::thread([&] {
      CHECK_THROWS_WITH_AS(graph.capture_end(), contains("begun by another thread"), DeviceError);
      CHECK_THROWS_WITH_AS(graph.reset(), contains("another thread is capturing this graph"), DeviceError);
      CHECK_THROWS_WITH_AS(graph.capture([] {}), contains("another thread is capturing this graph"), DeviceError);
    }).join();
    kernels::fill(x, 3);
  });
  CHECK_THROWS_WITH_AS(graph.capture([] {}), contains("holds a capture already"), DeviceError);
  graph.replay();
  other.replay();
  CHECK(values(x) == std::vector<float>(10, 30));
  graph.reset();
  CHECK_THROWS_WITH_AS(graph.capture([] { manual_seed(1); }), contains("seeded, replaced or set back"), DeviceError);
  CHECK(default_generator().replay() == nullptr);
  // An empty capture is not an error.
  graph.capture([] {});
  graph.replay();
  CHECK(graph.nodes() == 0);
}

TEST_CASE("while one thread captures, others work, and their memory is their own") {
  const Tensor x = filled(2000, 1);
  std::atomic<bool> capturing = false, stop = false;
  std::atomic<int> rounds = 0;
  std::atomic<int> wrong = 0;
  std::vector<const void*> captured;
  std::vector<const void*> outside;
  std::thread worker([&] {
    const cuda::Stream own = cuda::Stream::create();
    while (!stop) {
      const cuda::StreamGuard guard(rounds % 2 == 0 ? own : cuda::Stream::default_stream(0));
      const Tensor a = filled(2000, 5);
      const Tensor b = kernels::binary_scalar(a, 2, BinaryOp::Mul, false);
      if (capturing) outside.push_back(b.raw_data());
      cuda::record_stream(b.raw_data(), own);
      if (values(b) != std::vector<float>(2000, 10)) ++wrong;
      if (capturing) cuda::synchronize();
      ++rounds;
    }
  });
  cuda::Graph graph;
  graph.capture([&] {
    capturing = true;
    for (int i = 0; i < 30; ++i) {
      const int before = rounds;
      const Tensor y = kernels::binary_scalar(x, 1, BinaryOp::Add, false);
      captured.push_back(y.raw_data());
      kernels::copy(x, y);
      while (rounds == before)
        std::this_thread::yield();
    }
    capturing = false;
  });
  graph.replay();
  stop = true;
  worker.join();
  CHECK(wrong == 0);
  CHECK(values(x) == std::vector<float>(2000, 31));
  for (const void* address : captured)
    CHECK(std::find(outside.begin(), outside.end(), address) == outside.end());
}

}  // namespace brigade::test::graph_test
