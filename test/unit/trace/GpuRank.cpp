//===- GpuRank.cpp - A rank on a fake GPU -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuRank.h"

#include "../runtime/ThreadTransport.h"
#include "FakeNccl.h"
#include "zero_rt/step.h"

#include <cstring>
#include <thread>

using namespace zero;
using namespace zero::test;

const std::map<std::string, int64_t> zero::test::kGpuElements = {
    {"fc1.weight", 64 * 48},
    {"fc1.bias", 64},
    {"fc2.weight", 10 * 64},
    {"fc2.bias", 10}};

uint16_t zero::test::toBF16(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  EXPECT_EQ(bits & 0xffff, 0u) << value << " is no bf16";
  return uint16_t(bits >> 16);
}

void GpuTest::SetUp() {
  if (!canRun())
    GTEST_SKIP() << "this machine cannot run x86-64-v3";
  fake::reset(/*seed=*/7);
  fake::resetNccl();
}

void GpuTest::open(const LowerOptions &options) {
  library.isForCuda = true;
  ASSERT_EQ(library.open(options), "");
  kernels = std::make_unique<EmulatedProgram>(library.getModule());
}

void GpuTest::TearDown() {
  if (group)
    EXPECT_EQ(zero_rt_group_destroy(group), ZERO_RT_OK) << zero_rt_message();
  for (const std::string &error : fake::takeErrors())
    ADD_FAILURE() << error;
  EXPECT_EQ(fake::describeLeaks(), "");
  // Threads of the runtime may still be giving them back.
  for (int i = 0; i < 5000 && fake::countComms(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(fake::countComms(), 0);
}

/// Runs |body| for each of |groups|.
static void runAll(const std::vector<zero_rt_group *> &groups,
                   const std::function<void(int, zero_rt_group *)> &body) {
  std::vector<std::thread> threads;
  for (size_t r = 0; r < groups.size(); ++r)
    threads.emplace_back([&, r] { body(int(r), groups[r]); });
  for (std::thread &thread : threads)
    thread.join();
}

void GpuTest::runThreads(int ranks, const Body &body) {
  zero_rt_group *threads = nullptr;
  ASSERT_EQ(zero_rt_local_group_create(ranks, &threads), ZERO_RT_OK);
  runAll(std::vector<zero_rt_group *>(ranks, threads), body);
  EXPECT_EQ(zero_rt_group_destroy(threads), ZERO_RT_OK) << zero_rt_message();
}

void GpuTest::runProcesses(int ranks, const Body &body) {
  auto network = std::make_shared<zero_rt::test::Network>();
  std::vector<zero_rt_group *> groups(ranks);
  for (int r = 0; r < ranks; ++r) {
    zero_rt_transport transport =
        zero_rt::test::Network::connect(network, r, ranks);
    ASSERT_EQ(zero_rt_transport_group_create(&transport, &groups[r]),
              ZERO_RT_OK);
  }
  fake::setGpus(ranks, 9, 0);
  runAll(groups, body);
  for (zero_rt_group *end : groups)
    EXPECT_EQ(zero_rt_group_destroy(end), ZERO_RT_OK) << zero_rt_message();
}

static zero_rt_options makeOptions(const std::string &device, int64_t timeoutMs,
                                   int gpu, bool graphs) {
  zero_rt_options options = {};
  options.struct_size = sizeof(options);
  options.device = device.c_str();
  options.timeout_ms = timeoutMs;
  options.ordinal = gpu;
  options.graphs = graphs;
  return options;
}

GpuRank::GpuRank(StepLibrary &library, zero_rt_group *group, int rank,
                 const std::string &device, int64_t timeoutMs, int gpu,
                 bool graphs)
    : GpuRank(library, group, rank,
              makeOptions(device, timeoutMs, gpu, graphs)) {}

GpuRank::GpuRank(StepLibrary &library, zero_rt_group *group, int rank,
                 const zero_rt_options &options)
    : library(library) {
  check(zero_rt_create(group, rank, &options, &runtime));
}

void GpuRank::destroyStep() {
  for (void *data : memory)
    check(zero_rt_release(runtime, data));
  memory.clear();
  if (step)
    check(calls().step_destroy(step));
  step = nullptr;
}

GpuRank::~GpuRank() {
  destroyStep();
  if (runtime)
    check(zero_rt_destroy(runtime));
}

zero_rt_status GpuRank::create() {
  return zero_rt_step_create(runtime, &library.getLibrary(), nullptr, &step);
}

void GpuRank::check(zero_rt_status status) {
  EXPECT_EQ(status, ZERO_RT_OK) << zero_rt_message();
}

int32_t GpuRank::find(const std::string &name) {
  int32_t parameter = -1;
  check(calls().find_parameter(step, name.c_str(), &parameter));
  return parameter;
}

zero_rt_tensor GpuRank::makeTensor(const std::vector<uint16_t> &values) {
  zero_rt_tensor tensor = {sizeof(zero_rt_tensor), ZERO_RT_BF16,
                           ZERO_RT_SPACE_DEVICE,   0,
                           int64_t(values.size()), nullptr};
  // Not part of a step, whenever it is done.
  fake::mark("test");
  check(zero_rt_allocate(runtime, tensor.elements * 2, &tensor.data));
  memory.push_back(tensor.data);
  check(zero_rt_copy(runtime, tensor.data, values.data(), tensor.elements * 2));
  fake::mark("end of test");
  return tensor;
}

zero_rt_tensor GpuRank::makeTensor(int64_t elements, float value) {
  return makeTensor(std::vector<uint16_t>(elements, toBF16(value)));
}

void GpuRank::fill(const zero_rt_tensor &tensor, float value) {
  std::vector<uint16_t> values(tensor.elements, toBF16(value));
  check(zero_rt_copy(runtime, tensor.data, values.data(), tensor.elements * 2));
}

void GpuRank::useUnit(const std::string &unit,
                      const std::function<void()> &body) {
  int32_t id = -1;
  check(calls().find_unit(step, unit.c_str(), &id));
  check(calls().unshard(step, id, stream));
  body();
  check(calls().reshard(step, id, stream));
}

void GpuRank::run(const std::vector<std::string> &order, zero_rt_hint hint) {
  auto deliver = [&](const std::string &layer) {
    for (const std::string &name : order) {
      if (name.rfind(layer, 0) != 0)
        continue;
      zero_rt_tensor tensor =
          makeTensor(kGpuElements.at(name), 0.25f * float(1 + find(name)));
      zero_rt_timepoint release = 0;
      check(calls().gradient(step, find(name), &tensor, stream, &release));
    }
  };
  if (library.hasUnits) // the forward pass
    for (const char *unit : {"fc1", "fc2"})
      useUnit(unit, [] {});
  check(calls().begin_backward(step, hint));
  if (library.hasUnits)
    for (const char *unit : {"fc2", "fc1"})
      useUnit(unit, [&] { deliver(unit); });
  else
    deliver("");
  double rate = 0.125;
  check(calls().apply(step, &rate, 1, nullptr));
}

zero_rt_results GpuRank::getResults() {
  zero_rt_results results = {};
  results.struct_size = sizeof(results);
  check(calls().results(step, &results));
  return results;
}

std::vector<uint16_t> GpuRank::getParameter(const std::string &name) {
  zero_rt_tensor view = {};
  view.struct_size = sizeof(view);
  check(calls().parameter(step, find(name), &view));
  std::vector<uint16_t> values(view.elements);
  check(zero_rt_copy(runtime, values.data(), view.data, view.elements * 2));
  return values;
}
