//===- ScheduleTest.cpp - Streams and events that a library lists ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On the processor streams mean nothing; what they do on a GPU is in
// unit/trace. Here the numbers of a library must be in range.
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "TrainStep.h"

using namespace zero_rt::test;

namespace {

/// With an event on the stream of collectives, after which gradients may be
/// written and parameters be read.
LibraryBuilder makeScheduledStep() {
  LibraryBuilder library = makeTrainStep(2);
  library.streamEvents.push_back(
      {library.addText("gathered"), ZERO_RT_STREAM_COLLECTIVE});
  library.eventLists = {0, 0};
  library.buckets[0].num_writable = 1;
  library.buckets[0].first_readable = 1;
  library.buckets[0].num_readable = 1;
  return library;
}

TEST(Schedule, EventsAndListsAreInRange) {
  auto refuses = [](const char *text, void (*damage)(LibraryBuilder &)) {
    LibraryBuilder library = makeScheduledStep();
    damage(library);
    const zero_rt_library &damaged = library.get(); // which writes
    runRanks(2, [&](int32_t, zero_rt_runtime *runtime) {
      zero_rt_step *step = nullptr;
      expectStatus(
          ZERO_RT_INTERNAL,
          callsOf(runtime).step_create(runtime, &damaged, nullptr, &step),
          text);
      EXPECT_EQ(step, nullptr);
    });
  };
  using L = LibraryBuilder;
  refuses("stream event 0: bad stream",
          [](L &l) { l.streamEvents[0].stream = ZERO_RT_STREAM_COUNT; });
  refuses("stream event 0: bad stream",
          [](L &l) { l.streamEvents[0].stream = -1; });
  refuses("stream event 0: bad stream or name",
          [](L &l) { l.streamEvents[0].name = -1; });
  refuses("event list 1: bad event", [](L &l) { l.eventLists[1] = 1; });
  refuses("event list 0: bad event", [](L &l) { l.eventLists[0] = -1; });
  // The caller has not to wait for itself.
  refuses("event list 0: bad event",
          [](L &l) { l.streamEvents[0].stream = ZERO_RT_STREAM_CALLER; });
  refuses("bucket 0: bad list of writable events",
          [](L &l) { l.buckets[0].num_writable = 3; });
  refuses("bucket 0: bad list of writable events",
          [](L &l) { l.buckets[0].first_writable = -1; });
  refuses("bucket 0: bad list of readable events",
          [](L &l) { l.buckets[0].num_readable = -2; });
  refuses("bucket 0: bad list of readable events",
          [](L &l) { l.buckets[0].first_readable = INT64_MAX; });
}

TEST(Schedule, CallsAreInRange) {
  LibraryBuilder library = makeScheduledStep();
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectOk(calls.wait(step, 0, ZERO_RT_STREAM_COMPUTE)); // never recorded
    expectOk(calls.record(step, 0));
    expectOk(calls.wait(step, 0, ZERO_RT_STREAM_HOST));
    expectOk(calls.parameter_wait(step, 0, nullptr));
    expectOk(calls.copy_scalars(step));
    auto refuses = [](zero_rt_status status, const char *text) {
      expectStatus(ZERO_RT_INTERNAL, status, text);
    };
    refuses(calls.record(step, 1), "record: event 1 is out of range");
    refuses(calls.record(step, -1), "record: event -1 is out of range");
    refuses(calls.wait(step, 1, 0), "wait: event 1 is out of range");
    refuses(calls.wait(step, 0, 6), "wait: stream 6 is out of range");
    refuses(calls.all_reduce_scalars(step, 0, 1, 0, -1),
            "all_reduce_scalars: stream -1 is out of range");
    refuses(calls.all_reduce_scalars(step, 0, 1, 0, ZERO_RT_STREAM_CALLER),
            "all_reduce_scalars: stream 5 is out of range");
    refuses(calls.wait_writable(step, nullptr),
            "wait_writable: not in an arrive handler");
    zero_rt_event apply = {ZERO_RT_EVENT_APPLY, -1, nullptr};
    refuses(calls.wait_writable(step, &apply),
            "wait_writable: not in an arrive handler");
  });
}

// Only the calls that bring a stream of the caller can record it.
TEST(Schedule, TheStreamOfTheCallerBelongsToACall) {
  LibraryBuilder library = makeScheduledStep();
  library.streamEvents.push_back(
      {library.addText("delivered"), ZERO_RT_STREAM_CALLER});
  runSteps(library.get(), [&](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectStatus(ZERO_RT_INTERNAL, calls.record(step, 1),
                 "record: the call has no stream of the caller");
    // It has lent nothing.
    expectOk(calls.wait(step, 0, ZERO_RT_STREAM_CALLER));
  });
}

} // namespace
