//===- FloatingPointTest.cpp - Callers with a mode of their own -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "TrainStep.h"
#include "core/floating_point.h"
#include "core/step.h"
#include "core/thread_pool.h"

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>

using namespace zero_rt;
using namespace zero_rt::test;

#if defined(__x86_64__)
namespace {

constexpr unsigned flushToZero = 0x8000, inputsAreZero = 0x0040;
constexpr unsigned roundTowardZero = 0x6000, roundUp = 0x4000;
constexpr unsigned divisionTraps = ~0x0200U, inexactFlag = 0x0020;

/// Modes that callers may have, each another.
const unsigned modes[] = {
    FloatingPointMode::standard,
    FloatingPointMode::standard | flushToZero,
    FloatingPointMode::standard | inputsAreZero,
    FloatingPointMode::standard | roundTowardZero,
    FloatingPointMode::standard | roundUp | flushToZero | inputsAreZero,
    (FloatingPointMode::standard & divisionTraps) | inexactFlag};

/// The calling thread has |mode| while one lives, and expects to find it as it
/// was.
class Caller {
public:
  explicit Caller(unsigned mode) : mode(mode), before(_mm_getcsr()) {
    _mm_setcsr(mode);
  }
  ~Caller() {
    unsigned found = _mm_getcsr();
    _mm_setcsr(before);
    EXPECT_EQ(found, mode);
  }

private:
  unsigned mode, before;
};

/// The bits of parameters, of state and of the norm after two steps in which
/// the mode counts: numbers that need rounding, and subnormal ones. Rank 0
/// calls in |mode|.
std::vector<std::vector<char>> train(unsigned mode) {
  LibraryBuilder library = makeTrainStep(2);
  std::vector<std::vector<char>> all;
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    auto results = sized<zero_rt_results>();
    std::vector<std::vector<char>> mine;
    for (int32_t p = 0; p < NumTrainParameters; ++p)
      bindParameter(step, p, 0);
    {
      std::vector<float> tiny[2] = {trainGradient(Weight, 1e-40F),
                                    trainGradient(Weight, 1 / 3.0F)};
      std::vector<float> extra = trainGradient(Extra, 1e-39F);
      zero_rt_tensor extraTensor = tensorOf(ZERO_RT_F32, extra);
      double rate = 0.7;
      Caller caller(rank == 0 ? mode : FloatingPointMode::standard);
      for (std::vector<float> &each : tiny) {
        zero_rt_tensor tensor = tensorOf(ZERO_RT_F32, each);
        expectOk(calls.begin_backward(step, 0));
        expectOk(calls.gradient(step, Weight, &tensor, nullptr, nullptr));
        expectOk(calls.gradient(step, Extra, &extraTensor, nullptr, nullptr));
        expectOk(passGradient(step, Bias, 0));
        expectOk(passPieces(step, Tied, 0));
        expectOk(calls.apply(step, &rate, 1, nullptr));
        expectOk(calls.results(step, &results));
      }
    }
    auto *norm = reinterpret_cast<const char *>(&results.values[0]);
    mine.emplace_back(norm, norm + sizeof(double));
    for (size_t e = 0; e < step->get()->entries.size(); ++e) {
      auto entry = sized<zero_rt_state_entry>();
      expectOk(calls.state_describe(step, int64_t(e), &entry));
      int64_t size = entry.dtype == ZERO_RT_BF16  ? 2
                     : entry.dtype == ZERO_RT_F32 ? 4
                                                  : 8;
      mine.emplace_back(size_t((entry.end - entry.begin) * size));
      expectOk(calls.state_read(step, int64_t(e), mine.back().data(),
                                int64_t(mine.back().size())));
    }
    static std::mutex mutex;
    std::lock_guard<std::mutex> lock(mutex);
    // Ranks in their order.
    all.insert(rank == 0 ? all.begin() : all.end(), mine.begin(), mine.end());
  });
  return all;
}

TEST(FloatingPoint, CallersModesChangeNoBit) {
  std::vector<std::vector<char>> expected = train(FloatingPointMode::standard);
  for (unsigned mode : modes)
    EXPECT_EQ(train(mode), expected)
        << "not the bits of the standard mode: " << std::hex << mode;
}

zero_rt_status throwOut(zero_rt_step *, const zero_rt_event *) {
  throw std::runtime_error("of a handler");
}

// Whatever becomes of a call, the caller has its mode again.
TEST(FloatingPoint, ErrorsGiveTheModeBack) {
  LibraryBuilder library = makeTrainStep(1);
  LibraryBuilder bad = makeTrainStep(1);
  bad.handlers[size_t(bad.transitionHandlers[0])] = throwOut;
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    zero_rt_runtime *runtime = runtimeOf(step);
    for (unsigned mode : modes) {
      Caller caller(mode);
      expectStatus(ZERO_RT_INVALID_ARGUMENT, calls.accumulate(nullptr));
      expectStatus(ZERO_RT_PROTOCOL, calls.accumulate(step));
      expectStatus(ZERO_RT_INVALID_ARGUMENT, calls.begin_backward(step, 7));
      expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_wait(runtime, 99));
      expectStatus(ZERO_RT_INVALID_ARGUMENT, zero_rt_release(runtime, &caller));
      zero_rt_step *second = nullptr;
      expectStatus(ZERO_RT_INVALID_ARGUMENT,
                   calls.step_create(runtime, nullptr, nullptr, &second));
      expectOk(calls.step_create(runtime, &bad.get(), nullptr, &second));
      expectStatus(ZERO_RT_INTERNAL, calls.begin_backward(second, 0));
      expectOk(calls.step_destroy(second));
      expectStatus(ZERO_RT_INVALID_ARGUMENT, calls.step_destroy(second));
    }
  });
}

// What a mode traps on is no trap in a kernel.
TEST(FloatingPoint, TrapsOfTheCallerAreItsOwn) {
  LibraryBuilder library = makeTrainStep(1);
  library.scalarPrograms[0] = [](double *slots) {
    slots[BackwardsSquared] = slots[Backwards] * slots[Backwards];
    slots[Steps] +=
        1 / (slots[Backwards] - 1); // of one backward pass: infinite
  };
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    Caller caller(FloatingPointMode::standard & divisionTraps);
    expectOk(callsOf(step).begin_backward(step, 0));
    passAll(step);
    expectOk(applyStep(step));
  });
}

// Threads begin with the mode of the thread that creates them.
TEST(FloatingPoint, PoolsHaveOneModeWhoeverMakesThem) {
  Caller caller(FloatingPointMode::standard | roundUp | flushToZero);
  ThreadPool pool(3);
  std::atomic<int> others{0}, wrong{0};
  std::thread::id mine = std::this_thread::get_id();
  while (others < 2)
    pool.run(8, [&](int64_t) {
      if (std::this_thread::get_id() == mine)
        return std::this_thread::yield();
      ++others;
      wrong += _mm_getcsr() != FloatingPointMode::standard;
    });
  EXPECT_EQ(wrong, 0);
}

} // namespace
#endif // __x86_64__
