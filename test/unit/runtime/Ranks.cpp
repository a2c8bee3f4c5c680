//===- Ranks.cpp - Ranks as threads, and what they expect -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"

#include "ThreadTransport.h"
#include "comm/tcp/address.h"
#include "core/step.h"
#include "zero_rt/tcp.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <unistd.h>

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

zero_rt_runtime *zero_rt::test::runtimeOf(zero_rt_step *step) {
  return step->get()->runtime->handle;
}

double *zero_rt::test::slotsOf(zero_rt_step *step) {
  double *slots = nullptr;
  expectOk(step->get()->getSlots(&slots));
  return slots;
}

/// Not one that the system gives to whoever asks for any: those of other tests
/// would have it before it is used.
int32_t zero_rt::test::findFreePort() {
  static std::atomic<int32_t> next{0};
  for (int tries = 0; tries < 200; ++tries) {
    int32_t port = 10000 + getpid() % 100 * 200 + next++ % 200;
    zero_rt::Socket socket;
    if (!socket.listen(nullptr, port))
      return port;
  }
  ADD_FAILURE() << "no port is free: " << zero_rt_message();
  return 0;
}

/// Whether the environment says ZERO_TEST_GROUP=|kind|.
static bool isKind(const char *kind) {
  const char *value = std::getenv("ZERO_TEST_GROUP");
  return value && std::strcmp(value, kind) == 0;
}

static void connectOverTcp(std::vector<zero_rt_group *> &groups) {
  auto options = sized<zero_rt_tcp_options>();
  options.ranks = int32_t(groups.size());
  std::strcpy(options.host, "127.0.0.1");
  expectOk(zero_rt_tcp_listen(&options));
  std::vector<std::thread> threads;
  for (size_t r = 0; r < groups.size(); ++r)
    threads.emplace_back([&, r] {
      zero_rt_tcp_options mine = options;
      mine.rank = int32_t(r);
      mine.listener = r == 0 ? options.listener : 0;
      expectOk(zero_rt_tcp_group_create(&mine, &groups[r]));
    });
  for (std::thread &thread : threads)
    thread.join();
}

std::vector<zero_rt_group *> zero_rt::test::createGroups(int32_t ranks) {
  std::vector<zero_rt_group *> groups(static_cast<size_t>(ranks), nullptr);
  if (isKind("transport")) {
    auto network = std::make_shared<Network>();
    for (int32_t r = 0; r < ranks; ++r) {
      zero_rt_transport transport = Network::connect(network, r, ranks);
      expectOk(zero_rt_transport_group_create(&transport, &groups[size_t(r)]));
    }
    return groups;
  }
  if (isKind("tcp") || isKind("messages") || isKind("mixed")) {
    connectOverTcp(groups);
    return groups;
  }
  expectOk(zero_rt_local_group_create(ranks, &groups[0]));
  std::fill(groups.begin(), groups.end(), groups[0]);
  return groups;
}

void zero_rt::test::destroyGroups(const std::vector<zero_rt_group *> &groups) {
  for (size_t r = 0; r < groups.size(); ++r)
    if (r == 0 || groups[r] != groups[0])
      expectOk(zero_rt_group_destroy(groups[r]));
}

void zero_rt::test::runRanks(
    int32_t ranks,
    const std::function<void(int32_t rank, zero_rt_runtime *)> &body,
    const Options &options) {
  std::vector<zero_rt_group *> groups = createGroups(ranks);
  auto given = sized<zero_rt_options>();
  given.threads = options.threads;
  given.timeout_ms = options.timeoutMs;
  given.poison = options.poison;
  given.check_promises = options.checkPreconditions;
  given.find_nonfinite = options.findNonfinite;
  std::vector<zero_rt_runtime *> runtimes(size_t(ranks), nullptr);
  for (int32_t r = 0; r < ranks; ++r) {
    if (!options.devices.empty())
      given.device = options.devices[size_t(r) % options.devices.size()];
    if (isKind("messages") || isKind("mixed"))
      setenv("ZERO_RT_SHARED_MEMORY",
             isKind("mixed") && r < ranks - 1 ? "1" : "0", /*overwrite=*/1);
    expectOk(
        zero_rt_create(groups[size_t(r)], r, &given, &runtimes[size_t(r)]));
  }
  std::vector<std::thread> threads;
  for (int32_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] { body(r, runtimes[size_t(r)]); });
  for (std::thread &thread : threads)
    thread.join();
  for (zero_rt_runtime *runtime : runtimes)
    expectOk(zero_rt_destroy(runtime));
  destroyGroups(groups);
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
