//===- HandleTest.cpp - Handles that must not be used ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every call of the C interface that takes a handle, with the handle of a
// destroyed object, of another kind of object, of another process, and of a
// rank that another thread is using.
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "TrainStep.h"
#include "core/runtime.h"

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string_view>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

using namespace zero_rt::test;

namespace {

/// A call, with a handle and otherwise zeros.
struct HandleCall {
  std::string name;
  std::function<zero_rt_status(void *handle)> run;
};

template <typename Handle, typename... Rest>
HandleCall zeros(const char *name, zero_rt_status (*call)(Handle *, Rest...)) {
  return {name, [call](void *handle) {
            return call(static_cast<Handle *>(handle), Rest()...);
          }};
}

std::vector<HandleCall> callsOfGroups() {
  auto create = [](void *group) {
    zero_rt_runtime *none = nullptr;
    return zero_rt_create(static_cast<zero_rt_group *>(group), 0, nullptr,
                          &none);
  };
  return {{"zero_rt_create", create},
          zeros("zero_rt_group_destroy", zero_rt_group_destroy)};
}

/// |table| is that of a step or of a runtime that lives.
std::vector<HandleCall> callsOfRuntimes(const zero_rt_calls &table) {
  return {zeros("step_create", table.step_create),
          zeros("zero_rt_read_counters", zero_rt_read_counters),
          zeros("zero_rt_wait", zero_rt_wait),
          zeros("zero_rt_has_passed", zero_rt_has_passed),
          zeros("zero_rt_stream_wait", zero_rt_stream_wait),
          zeros("zero_rt_allocate", zero_rt_allocate),
          zeros("zero_rt_release", zero_rt_release),
          zeros("zero_rt_copy", zero_rt_copy),
          zeros("zero_rt_destroy", zero_rt_destroy)};
}

std::vector<HandleCall> callsOfSteps(const zero_rt_calls &table) {
  std::vector<HandleCall> calls;
#define ZERO_RT_PROGRAM_CALL(NAME, ARGUMENTS)                                  \
  calls.push_back(zeros(#NAME, table.NAME));
#define ZERO_RT_STEP_CALL(NAME, ARGUMENTS)                                     \
  if constexpr (std::string_view(#NAME) != "step_create")                      \
    calls.push_back(zeros(#NAME, table.NAME));
#include "zero_rt/calls.def"
  return calls;
}

/// Expects all of |calls| to refuse |handle|.
void expectAllRefuse(const std::vector<HandleCall> &calls, void *handle,
                     zero_rt_status status, const std::string &text) {
  for (const HandleCall &call : calls)
    expectStatus(status, call.run(handle), (call.name + ": " + text).c_str());
}

/// A group of one rank, its runtime and steps of it.
class HandleTest : public testing::Test {
protected:
  HandleTest() : library(makeTrainStep(1)) {
    expectOk(zero_rt_local_group_create(1, &group));
    auto options = sized<zero_rt_options>();
    options.threads = 2;
    expectOk(zero_rt_create(group, 0, &options, &runtime));
    for (zero_rt_step **each : {&step, &other})
      expectOk(table().step_create(runtime, &library.get(), nullptr, each));
  }
  ~HandleTest() override {
    if (other)
      expectOk(table().step_destroy(other));
    if (step)
      expectOk(table().step_destroy(step));
    if (runtime)
      expectOk(zero_rt_destroy(runtime));
    if (group)
      expectOk(zero_rt_group_destroy(group));
  }
  const zero_rt_calls &table() const { return callsOf(runtime); }

  LibraryBuilder library;
  zero_rt_group *group = nullptr;
  zero_rt_runtime *runtime = nullptr;
  zero_rt_step *step = nullptr;
  zero_rt_step *other = nullptr;
};

TEST_F(HandleTest, EveryCallRefusesADestroyedOne) {
  const zero_rt_calls &calls = table();
  constexpr zero_rt_status refused = ZERO_RT_INVALID_ARGUMENT;
  zero_rt_step *gone = std::exchange(step, nullptr);
  expectOk(calls.step_destroy(gone));
  expectAllRefuse(callsOfSteps(calls), gone, refused, "the step was destroyed");
  // The other one goes on.
  bindParameter(other, Bias, 1);
  expectOk(calls.step_destroy(std::exchange(other, nullptr)));

  zero_rt_runtime *goneRuntime = std::exchange(runtime, nullptr);
  expectOk(zero_rt_destroy(goneRuntime));
  expectAllRefuse(callsOfRuntimes(calls), goneRuntime, refused,
                  "the runtime was destroyed");
  expectAllRefuse(callsOfSteps(calls), gone, refused, "the step was destroyed");

  zero_rt_group *goneGroup = std::exchange(group, nullptr);
  expectOk(zero_rt_group_destroy(goneGroup));
  expectAllRefuse(callsOfGroups(), goneGroup, refused,
                  "the process group was destroyed");
  expectAllRefuse(callsOfRuntimes(calls), goneRuntime, refused,
                  "the runtime was destroyed");

  // New objects have handles of their own.
  expectOk(zero_rt_local_group_create(1, &group));
  expectOk(zero_rt_create(group, 0, nullptr, &runtime));
  EXPECT_NE(static_cast<void *>(group), static_cast<void *>(goneGroup));
  EXPECT_NE(static_cast<void *>(runtime), static_cast<void *>(goneRuntime));
  expectAllRefuse(callsOfRuntimes(calls), goneRuntime, refused,
                  "the runtime was destroyed");
}

TEST_F(HandleTest, EveryCallRefusesAnotherKind) {
  constexpr zero_rt_status refused = ZERO_RT_INVALID_ARGUMENT;
  expectAllRefuse(callsOfSteps(table()), runtime, refused,
                  "this is no step, but a runtime");
  expectAllRefuse(callsOfSteps(table()), group, refused,
                  "this is no step, but a process group");
  expectAllRefuse(callsOfRuntimes(table()), step, refused,
                  "this is no runtime, but a step");
  expectAllRefuse(callsOfGroups(), runtime, refused,
                  "this is no process group, but a runtime");
  uint64_t words[16] = {};
  expectAllRefuse(callsOfRuntimes(table()), words, refused,
                  "this is no runtime");
}

TEST_F(HandleTest, EveryCallRefusesNull) {
  constexpr zero_rt_status refused = ZERO_RT_INVALID_ARGUMENT;
  expectAllRefuse(callsOfSteps(table()), nullptr, refused, "step is null");
  expectAllRefuse(callsOfRuntimes(table()), nullptr, refused,
                  "runtime is null");
  expectAllRefuse(callsOfGroups(), nullptr, refused, "process group is null");
}

// A function that is added to a header is added to the lists above.
TEST_F(HandleTest, ListsEveryCallOfTheHeaders) {
  std::set<std::string> listed, declared;
  for (const HandleCall &call : callsOfGroups())
    listed.insert(call.name);
  for (const HandleCall &call : callsOfRuntimes(table()))
    if (call.name != "step_create") // of calls.def
      listed.insert(call.name);
  for (const char *header :
       {"abi.h", "mpi.h", "tcp.h", "transport.h", "status.h", "library.h"}) {
    std::ifstream file(std::string(ZERO_RT_HEADERS "/") + header);
    std::stringstream text;
    text << file.rdbuf();
    ASSERT_FALSE(text.str().empty()) << header;
    std::string source = text.str();
    std::regex call(R"((zero_rt_\w+)\(zero_rt_(group|runtime|step) \*\w)");
    for (std::sregex_iterator it(source.begin(), source.end(), call), end;
         it != end; ++it)
      declared.insert((*it)[1]);
  }
  EXPECT_EQ(listed, declared);
}

TEST_F(HandleTest, ReleaseTakesOwnMemoryOnly) {
  zero_rt_group *others = nullptr;
  zero_rt_runtime *stranger = nullptr;
  expectOk(zero_rt_local_group_create(1, &others));
  expectOk(zero_rt_create(others, 0, nullptr, &stranger));
  void *data = nullptr;
  expectOk(zero_rt_allocate(runtime, 100, &data));
  const char *text = "data is not from zero_rt_allocate of this runtime";
  expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_release(stranger, data), text);
  expectStatus(ZERO_RT_INVALID_ARGUMENT,
               zero_rt_release(runtime, static_cast<char *>(data) + 64), text);
  int local = 0;
  expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_release(runtime, &local),
               text);
  expectOk(zero_rt_release(runtime, data));
  expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_release(runtime, data),
               "was released before");
  expectOk(zero_rt_release(runtime, nullptr));
  expectOk(zero_rt_destroy(stranger));
  expectOk(zero_rt_group_destroy(others));
}

// The threads of the runtime are in the parent only, so a kernel would wait for
// ever.
TEST_F(HandleTest, EveryCallRefusesAForkedProcess) {
  std::string text = "process " + std::to_string(getpid()) + " created the ";
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    expectAllRefuse(callsOfSteps(table()), step, ZERO_RT_INVALID_ARGUMENT,
                    text + "step, and this is process " +
                        std::to_string(getpid()));
    expectAllRefuse(callsOfRuntimes(table()), runtime, ZERO_RT_INVALID_ARGUMENT,
                    text + "runtime");
    expectAllRefuse(callsOfGroups(), group, ZERO_RT_INVALID_ARGUMENT,
                    text + "process group");
    // Handles that the child makes are its own.
    zero_rt_group *mine = nullptr;
    expectOk(zero_rt_local_group_create(1, &mine));
    expectOk(zero_rt_group_destroy(mine));
    _exit(HasFailure());
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the child failed, or waited for ever";
  bindParameter(step, Bias, 1); // the parent goes on
}

Gate *inHandler = nullptr;
Gate *mayLeave = nullptr;

zero_rt_status stay(zero_rt_step *step, const zero_rt_event *) {
  inHandler->open();
  mayLeave->wait();
  return callsOf(step).allocate(step, GradientBuffer);
}

TEST_F(HandleTest, EveryCallRefusesASecondThread) {
  Gate entered, end;
  inHandler = &entered;
  mayLeave = &end;
  LibraryBuilder slow = makeTrainStep(1);
  // The first handler begins a backward pass.
  slow.handlers[size_t(slow.transitionHandlers[0])] = stay;
  zero_rt_step *busy = nullptr;
  expectOk(table().step_create(runtime, &slow.get(), nullptr, &busy));
  std::thread caller([&] { expectOk(callsOf(busy).begin_backward(busy, 0)); });
  entered.wait();
  const char *text = "another thread is in a call of the same runtime";
  for (zero_rt_step *each : {busy, step})
    expectAllRefuse(callsOfSteps(table()), each, ZERO_RT_PROTOCOL, text);
  expectAllRefuse(callsOfRuntimes(table()), runtime, ZERO_RT_PROTOCOL, text);
  end.open();
  caller.join();
  // One after the other is as good as one thread.
  expectOk(table().discard(busy));
  expectOk(table().begin_backward(step, 0));
  expectOk(table().discard(step));
  expectOk(table().step_destroy(busy));
}

// Two threads at random: each call is made, or refused as a whole.
TEST_F(HandleTest, ThreadsThatDoNotTakeTurns) {
  auto use = [&](zero_rt_step *mine) {
    int made = 0;
    for (int i = 0; i < 2000 || made == 0; ++i) {
      double scale = 0;
      zero_rt_status status = callsOf(mine).loss_scale(mine, &scale);
      EXPECT_TRUE(status == ZERO_RT_OK || status == ZERO_RT_PROTOCOL);
      made += status == ZERO_RT_OK;
    }
  };
  std::thread second([&] { use(other); });
  use(step);
  second.join();
}

} // namespace
