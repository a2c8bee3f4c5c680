//===- ProtocolTest.cpp - What is allowed when ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "TrainStep.h"

#include <algorithm>

using namespace zero_rt::test;

namespace {

/// Brings a fresh step into |state|.
void enter(zero_rt_step *step, int state) {
  const zero_rt_calls &calls = callsOf(step);
  if (state == Idle)
    return;
  expectOk(calls.begin_backward(step, ZERO_RT_HINT_UNKNOWN));
  if (state == InFirst)
    return;
  passAll(step);
  expectOk(calls.accumulate(step));
  if (state == InLater)
    expectOk(calls.begin_backward(step, ZERO_RT_HINT_LAST));
  if (state == Measured)
    expectOk(measureStep(step));
}

zero_rt_status raise(zero_rt_step *step, int event) {
  const zero_rt_calls &calls = callsOf(step);
  switch (event) {
  case ZERO_RT_EVENT_BEGIN:
    return calls.begin_backward(step, ZERO_RT_HINT_MORE);
  case ZERO_RT_EVENT_ARRIVE:
    return passGradient(step, Weight);
  case ZERO_RT_EVENT_ACCUMULATE:
    return calls.accumulate(step);
  case ZERO_RT_EVENT_APPLY:
    return applyStep(step);
  case ZERO_RT_EVENT_BEGIN_LAST:
    return calls.begin_backward(step, ZERO_RT_HINT_LAST);
  case ZERO_RT_EVENT_MEASURE:
    return measureStep(step);
  default:
    return calls.discard(step);
  }
}

/// The events of a step without units precede those of units.
constexpr int NumEvents = ZERO_RT_EVENT_UNSHARD;

// Every event in every state: allowed, or refused by a message that names the
// call, the state and the way out.
TEST(Protocol, EveryEventInEveryState) {
  const char *begin = "call begin_backward first";
  const char *close = "call accumulate, apply or discard first";
  const char *nothing = "there is nothing to discard";
  const char *decide = "the step was measured; call apply or discard first";
  const char *const refusals[NumTrainStates][NumEvents] = {
      {nullptr, begin, begin, begin, nothing, nullptr, begin},
      {close, nullptr, nullptr, nullptr, nullptr, close, nullptr},
      {nullptr, begin, begin, nullptr, nullptr, nullptr, nullptr},
      {close, nullptr, nullptr, nullptr, nullptr, close, nullptr},
      {decide, decide, decide, nullptr, nullptr, decide, decide}};
  const char *const states[] = {"idle", "first", "between", "later",
                                "measured"};
  const char *const calls[] = {"begin_backward", "gradient", "accumulate",
                               "apply",          "discard",  "begin_backward",
                               "measure"};
  LibraryBuilder library = makeTrainStep(1);
  for (int state = 0; state < NumTrainStates; ++state) {
    for (int event = 0; event < NumEvents; ++event) {
      runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
        enter(step, state);
        const char *refusal = refusals[state][event];
        if (!refusal)
          return expectOk(raise(step, event));
        expectStatus(ZERO_RT_PROTOCOL, raise(step, event), refusal);
        std::string place =
            std::string(calls[event]) + " in state '" + states[state] + "': ";
        EXPECT_EQ(std::string(zero_rt_message()).find(place), 0u)
            << zero_rt_message();
        // A refused call changes nothing.
        if (state != Idle)
          expectOk(callsOf(step).discard(step));
        expectOk(callsOf(step).begin_backward(step, ZERO_RT_HINT_MORE));
      });
    }
  }
}

// A step that was compiled for one backward pass has no transition of a second
// one. The caller learns why.
TEST(Protocol, RefusesASecondBackwardPassOfAStepOfOne) {
  LibraryBuilder library = makeTrainStep(1);
  std::vector<zero_rt_transition_row> &rows = library.transitions;
  auto isSecond = [](const zero_rt_transition_row &row) {
    return row.state == Between && (row.event == ZERO_RT_EVENT_BEGIN ||
                                    row.event == ZERO_RT_EVENT_BEGIN_LAST);
  };
  rows.erase(std::remove_if(rows.begin(), rows.end(), isSecond), rows.end());
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    for (int32_t hint : {ZERO_RT_HINT_MORE, ZERO_RT_HINT_LAST}) {
      enter(step, Between);
      expectStatus(ZERO_RT_PROTOCOL, calls.begin_backward(step, hint),
                   "begin_backward in state 'between': the step was compiled "
                   "for one backward pass; call apply or discard first, or "
                   "compile the step without one_backward");
      expectOk(applyStep(step));
    }
  });
}

TEST(Protocol, ChecksHintsAndInputs) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectStatus(ZERO_RT_INVALID_ARGUMENT, calls.begin_backward(step, 3),
                 "hint is 3");
    expectOk(calls.begin_backward(step, ZERO_RT_HINT_LAST));
    passAll(step);
    double inputs[2] = {};
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.apply(step, inputs, 2, nullptr),
                 "apply got 2 inputs, 'train' takes 1");
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.apply(step, nullptr, 1, nullptr), "inputs is null");
    expectOk(calls.apply(step, inputs, 1, nullptr));
  });
}

TEST(Protocol, ResultsNeedAnApply) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    auto results = sized<zero_rt_results>();
    expectStatus(ZERO_RT_PROTOCOL, calls.results(step, &results),
                 "results of 'train' before the first apply");
    expectStatus(ZERO_RT_INVALID_ARGUMENT, calls.results(step, nullptr),
                 "out_results is null");
  });
}

// What changes state from outside must not fall into a window.
TEST(Protocol, BindingAndWritingNeedIdle) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectOk(calls.begin_backward(step, ZERO_RT_HINT_UNKNOWN));
    std::vector<uint16_t> value(3);
    zero_rt_tensor tensor = tensorOf(ZERO_RT_BF16, value);
    expectStatus(ZERO_RT_PROTOCOL, calls.bind_parameter(step, Bias, &tensor),
                 "bind_parameter in state 'first': only allowed in state "
                 "'idle'");
    expectStatus(ZERO_RT_PROTOCOL, calls.state_write(step, 1, value.data(), 6),
                 "state_write in state 'first'");
    expectOk(calls.state_read(step, 1, value.data(), 6));
    expectOk(calls.discard(step));
  });
}

// A handler that fails leaves half a step, so only destroy is left.
TEST(Protocol, AFailingHandlerPoisons) {
  LibraryBuilder library = makeTrainStep(1);
  library.addTransition(Idle, ZERO_RT_EVENT_DISCARD, Idle,
                        {[](zero_rt_step *step, const zero_rt_event *) {
                          return callsOf(step).release(step, GradientBuffer);
                        }});
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectStatus(ZERO_RT_INTERNAL, calls.discard(step),
                 "release: buffer 'b0' is not allocated");
    expectStatus(ZERO_RT_POISONED, calls.begin_backward(step, 0),
                 "begin_backward: step 'train' can only be destroyed since: "
                 "discard failed: release: buffer 'b0' is not allocated");
    int64_t count;
    expectStatus(ZERO_RT_POISONED, calls.state_count(step, &count));
  });
}

TEST(Protocol, AnApplyThatNeverSettlesIsABug) {
  LibraryBuilder library = makeTrainStep(1);
  library.addTransition(Idle, ZERO_RT_EVENT_APPLY, Idle);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    expectOk(applyStep(step));
    auto results = sized<zero_rt_results>();
    expectStatus(ZERO_RT_INTERNAL, callsOf(step).results(step, &results),
                 "never committed");
  });
}

TEST(Protocol, WaitsAndScalesAreAvailable) {
  LibraryBuilder library = makeTrainStep(1);
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectOk(calls.parameter_wait(step, -1, nullptr));
    expectOk(calls.parameter_wait(step, Extra, nullptr));
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 calls.parameter_wait(step, 4, nullptr),
                 "parameter 4 is out of range, step 'train' has 4");
    double scale = 0;
    expectOk(calls.loss_scale(step, &scale));
    EXPECT_EQ(scale, 1024);
    expectStatus(ZERO_RT_INVALID_ARGUMENT, calls.loss_scale(step, nullptr),
                 "out_scale is null");
  });
}

} // namespace
