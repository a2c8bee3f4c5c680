//===- Ranks.h - Ranks as threads, and what they expect ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_RUNTIME_RANKS_H
#define ZERO_TEST_UNIT_RUNTIME_RANKS_H

#include "zero_rt/library.h"

#include "gtest/gtest.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace zero_rt::test {

/// The table of calls that a step or a runtime carries in its first word.
template <typename T> const zero_rt_calls &callsOf(const T *object) {
  return **reinterpret_cast<const zero_rt_calls *const *>(object);
}

/// The runtime of |step|.
zero_rt_runtime *runtimeOf(zero_rt_step *step);

/// The scalars of |step| on the processor.
double *slotsOf(zero_rt_step *step);

/// Expects |status| to be |expected| and the message to contain |text|.
void expectStatus(zero_rt_status expected, zero_rt_status status,
                  const char *text = "");
inline void expectOk(zero_rt_status status) {
  expectStatus(ZERO_RT_OK, status);
}

/// A struct that begins with its size.
template <typename T> T sized() {
  T value = {};
  value.struct_size = sizeof(T);
  return value;
}

struct Options {
  int32_t threads = 1;
  int64_t timeoutMs = 20000;
  bool poison = false;
  bool checkPreconditions = false;
  bool findNonfinite = false;
  /// Those of zero_rt_options, which ranks take in turn; empty: the host.
  std::vector<const char *> devices = {};
};

/// The ends of a group of |ranks|, by rank: all one, unless the environment
/// says ZERO_TEST_GROUP=transport, tcp, messages or mixed; then each is that of
/// a process. Over TCP ranks share memory; none does of `messages`, and all
/// but the last one of `mixed`.
std::vector<zero_rt_group *> createGroups(int32_t ranks);
/// A port that nobody listens at, for now.
int32_t findFreePort();
void destroyGroups(const std::vector<zero_rt_group *> &groups);

/// Makes a group and runs |body| for each rank on a thread of its own. All
/// runtimes exist before the first body runs, and until the last is done.
void runRanks(int32_t ranks,
              const std::function<void(int32_t rank, zero_rt_runtime *)> &body,
              const Options &options = {});

struct StepDeleter {
  void operator()(zero_rt_step *step) const {
    expectOk(callsOf(step).step_destroy(step));
  }
};
using StepHandle = std::unique_ptr<zero_rt_step, StepDeleter>;

/// Creates a step, which must succeed.
StepHandle createStep(zero_rt_runtime *runtime, const zero_rt_library &library);

/// Expects that no rank can create a step of |library|: with |status|, a
/// message that contains |text|, and nothing left behind.
void expectRefused(zero_rt_runtime *runtime, const zero_rt_library &library,
                   zero_rt_status status, const char *text);
void expectRefused(const zero_rt_library &library, zero_rt_status status,
                   const char *text);

/// As runRanks, with a step of |library| on each rank.
void runSteps(const zero_rt_library &library,
              const std::function<void(int32_t rank, zero_rt_step *)> &body,
              const Options &options = {});

zero_rt_counters countersOf(zero_rt_runtime *runtime);

/// A tensor in device space over |data|.
zero_rt_tensor tensorOf(int32_t dtype, void *data, int64_t elements);
template <typename T>
zero_rt_tensor tensorOf(int32_t dtype, std::vector<T> &data) {
  return tensorOf(dtype, data.data(), int64_t(data.size()));
}

/// Lets threads of a test order what they do; not a part of the runtime.
class Gate {
public:
  void open();
  void wait();

private:
  std::mutex mutex;
  std::condition_variable changed;
  bool isOpen = false;
};

} // namespace zero_rt::test

#endif // ZERO_TEST_UNIT_RUNTIME_RANKS_H
