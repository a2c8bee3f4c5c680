//===- Ranks.cpp - Ranks as threads, and what they expect -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"

#include <thread>

using namespace zero_rt::test;

void zero_rt::test::expectStatus(zero_rt_status expected, zero_rt_status status,
                                 const char *text) {
  EXPECT_STREQ(zero_rt_status_name(expected), zero_rt_status_name(status))
      << (status ? zero_rt_message() : "");
  if (status != ZERO_RT_OK) {
    EXPECT_NE(std::string(zero_rt_message()).find(text), std::string::npos)
        << "message: " << zero_rt_message() << "\nexpected: " << text;
  }
}

void zero_rt::test::runRanks(
    int32_t ranks,
    const std::function<void(int32_t rank, zero_rt_runtime *)> &body,
    const Options &options) {
  zero_rt_group *group = nullptr;
  expectOk(zero_rt_local_group_create(ranks, &group));
  auto given = sized<zero_rt_options>();
  given.threads = options.threads;
  given.timeout_ms = options.timeoutMs;
  given.poison = options.poison;
  given.check_promises = options.checkPromises;
  given.find_nonfinite = options.findNonfinite;
  std::vector<zero_rt_runtime *> runtimes(size_t(ranks), nullptr);
  for (int32_t r = 0; r < ranks; ++r)
    expectOk(zero_rt_create(group, r, &given, &runtimes[size_t(r)]));
  std::vector<std::thread> threads;
  for (int32_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] { body(r, runtimes[size_t(r)]); });
  for (std::thread &thread : threads)
    thread.join();
  for (zero_rt_runtime *runtime : runtimes)
    expectOk(zero_rt_destroy(runtime));
  expectOk(zero_rt_group_destroy(group));
}

StepHandle zero_rt::test::createStep(zero_rt_runtime *runtime,
                                     const zero_rt_library &library) {
  zero_rt_step *step = nullptr;
  expectOk(callsOf(runtime).step_create(runtime, &library, nullptr, &step));
  return StepHandle(step);
}

void zero_rt::test::expectRefused(zero_rt_runtime *runtime,
                                  const zero_rt_library &library,
                                  zero_rt_status status, const char *text) {
  auto *none = reinterpret_cast<zero_rt_step *>(1);
  expectStatus(status,
               callsOf(runtime).step_create(runtime, &library, nullptr, &none),
               text);
  EXPECT_EQ(none, nullptr);
  zero_rt_counters counters = countersOf(runtime);
  for (int space = 0; space < 2; ++space)
    for (int64_t bytes : counters.bytes_now[space])
      EXPECT_EQ(bytes, 0);
}

void zero_rt::test::expectRefused(const zero_rt_library &library,
                                  zero_rt_status status, const char *text) {
  runRanks(int32_t(library.ranks), [&](int32_t, zero_rt_runtime *runtime) {
    expectRefused(runtime, library, status, text);
  });
}

void zero_rt::test::runSteps(
    const zero_rt_library &library,
    const std::function<void(int32_t rank, zero_rt_step *)> &body,
    const Options &options) {
  runRanks(
      int32_t(library.ranks),
      [&](int32_t rank, zero_rt_runtime *runtime) {
        StepHandle step = createStep(runtime, library);
        if (step)
          body(rank, step.get());
      },
      options);
}

zero_rt_counters zero_rt::test::countersOf(zero_rt_runtime *runtime) {
  auto counters = sized<zero_rt_counters>();
  expectOk(zero_rt_read_counters(runtime, &counters));
  return counters;
}

zero_rt_tensor zero_rt::test::tensorOf(int32_t dtype, void *data,
                                       int64_t elements) {
  auto tensor = sized<zero_rt_tensor>();
  tensor.dtype = dtype;
  tensor.space = ZERO_RT_SPACE_DEVICE;
  tensor.elements = elements;
  tensor.data = data;
  return tensor;
}

void Gate::open() {
  std::lock_guard<std::mutex> lock(mutex);
  isOpen = true;
  changed.notify_all();
}

void Gate::wait() {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [this] { return isOpen; });
}
