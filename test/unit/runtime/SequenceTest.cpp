//===- SequenceTest.cpp - Buckets closed in order, few open at once -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Four buckets of one parameter each, two open at once: the third has the
// memory of the first, the fourth that of the second. A handler that closes a
// bucket copies what is in it, so that a test sees what would have been
// reduced.
//
//===----------------------------------------------------------------------===//

#include "LibraryBuilder.h"
#include "Ranks.h"
#include "core/status.h"
#include "core/step.h"

#include <algorithm>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

constexpr int64_t kElements = 4;
constexpr int kBuckets = 4;
/// Buffer b is the gradient of bucket b, these are the others.
enum { Closed0 = kBuckets, Parameters = 2 * kBuckets };

void store(void *const *operands, const double *, int64_t begin, int64_t end,
           double *) {
  for (int64_t i = begin; i < end; ++i)
    static_cast<float *>(operands[1])[i] = static_cast<float *>(operands[0])[i];
}

void add(void *const *operands, const double *, int64_t begin, int64_t end,
         double *) {
  for (int64_t i = begin; i < end; ++i)
    static_cast<float *>(operands[1])[i] +=
        static_cast<float *>(operands[0])[i];
}

zero_rt_status arriveHandler(zero_rt_step *step, const zero_rt_event *event) {
  return callsOf(step).pack(step, event, 0);
}

template <int B>
zero_rt_status closeHandler(zero_rt_step *step, const zero_rt_event *) {
  ZERO_RT_TRY(callsOf(step).fill_missing(step, B));
  return callsOf(step).copy(step, B, Closed0 + B, ZERO_RT_STREAM_COMPUTE);
}

/// Scalar slot p has the backward passes with a gradient of parameter p.
zero_rt_status countHandler(zero_rt_step *step, const zero_rt_event *) {
  for (int32_t p = 0; p < kBuckets; ++p)
    ZERO_RT_TRY(callsOf(step).count_delivered(step, p, p));
  return ZERO_RT_OK;
}

LibraryBuilder makeLibrary() {
  LibraryBuilder library(1);
  const char *names[] = {"w0", "w1", "w2", "w3"};
  for (const char *name : names)
    library.addBuffer(
        {name, ZERO_RT_F32, kElements, false, ZERO_RT_ROLE_GRADIENT});
  library.buffers[2].shares = 0;
  library.buffers[3].shares = 1;
  for (int b = 0; b < kBuckets; ++b)
    library.addBuffer(
        {"closed", ZERO_RT_F32, kElements, false, ZERO_RT_ROLE_STATE});
  library.addBuffer(
      {"parameters", ZERO_RT_F32, kElements, false, ZERO_RT_ROLE_PARAMETER});
  library.addKernel(store);
  library.addKernel(add);
  for (int b = 0; b < kBuckets; ++b) {
    library.buckets.push_back({library.addText(names[b]), kElements, b,
                               Parameters, -1, 0, 1, /*staging=*/-1,
                               /*rows=*/-1, /*replicated=*/-1, 0, 0, 0,
                               /*num_readable=*/-1});
    library.parameters.push_back({library.addText(names[b]), ZERO_RT_F32,
                                  ZERO_RT_F32, 3, b, 0, kElements,
                                  /*optional=*/1, /*uses=*/1});
  }
  library.parameters[1].uses = 2;
  for (const char *name : names)
    library.addSlot(name);
  for (const char *state : {"idle", "open"})
    library.addProtocolState(state);
  library.addTransition(0, ZERO_RT_EVENT_BEGIN, 1, {});
  library.addTransition(1, ZERO_RT_EVENT_ARRIVE, 1, {arriveHandler});
  library.addTransition(1, ZERO_RT_EVENT_APPLY, 0, {countHandler});
  library.addTransition(1, ZERO_RT_EVENT_DISCARD, 0, {});
  zero_rt_handler_fn close[] = {closeHandler<0>, closeHandler<1>,
                                closeHandler<2>, closeHandler<3>};
  library.sequences.push_back({0, kBuckets, /*reserved=*/0, /*scratch=*/1});
  for (int b = 0; b < kBuckets; ++b) {
    library.sequenceEntries.push_back({b, int64_t(library.handlers.size())});
    library.handlers.push_back(close[b]);
  }
  for (size_t t = 1; t < library.transitions.size(); ++t)
    library.transitions[t].sequence = 0;
  return library;
}

/// Gradient |value|, |value| + 1, ... of |parameter|.
struct Gradient {
  explicit Gradient(float value) : data{value, value + 1, value + 2} {}
  std::vector<float> data;
  zero_rt_timepoint release = 0;

  void pass(zero_rt_step *step, int32_t parameter) {
    zero_rt_tensor tensor = tensorOf(ZERO_RT_F32, data);
    expectOk(
        callsOf(step).gradient(step, parameter, &tensor, nullptr, &release));
  }
};

const float *closed(zero_rt_step *step, int bucket) {
  return static_cast<float *>(
      step->get()->buffers[size_t(Closed0 + bucket)].data);
}

void expectClosed(zero_rt_step *step, int bucket, float value) {
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(closed(step, bucket)[i], value + float(i)) << "bucket " << bucket;
  EXPECT_EQ(closed(step, bucket)[3], 0) << "pad of bucket " << bucket;
}

int64_t stagingBytes(zero_rt_step *step) {
  return countersOf(runtimeOf(step)).bytes_now[0][ZERO_RT_ROLE_STAGING];
}

// Memory of two buckets, whatever their number.
TEST(Sequence, SharedMemoryCountsOnce) {
  LibraryBuilder library = makeLibrary();
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    EXPECT_EQ(countersOf(runtimeOf(step)).bytes_now[0][ZERO_RT_ROLE_GRADIENT],
              2 * kElements * 4);
    EXPECT_EQ(step->get()->buffers[2].data, step->get()->buffers[0].data);
  });
}

// Every order of arrivals leaves the same in every bucket, and takes what
// waited from where it lies: the caller keeps it until then.
TEST(Sequence, AnyOrderOfArrivals) {
  LibraryBuilder library = makeLibrary();
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    std::vector<int32_t> order{0, 1, 1, 2, 3};
    do {
      expectOk(calls.begin_backward(step, 0));
      std::vector<Gradient> gradients;
      for (int32_t p : order)
        gradients.emplace_back(float(10 * (p + 1)));
      for (size_t i = 0; i < order.size(); ++i)
        gradients[i].pass(step, order[i]);
      // Whoever was released may be overwritten; the others may not.
      for (Gradient &gradient : gradients) {
        expectOk(zero_rt_wait(runtimeOf(step), gradient.release));
        gradient.data.assign(3, -1);
      }
      expectOk(calls.apply(step, nullptr, 0, nullptr));
      expectClosed(step, 0, 10);
      for (int i = 0; i < 3; ++i)
        EXPECT_EQ(closed(step, 1)[i], 2 * (20 + float(i)));
      expectClosed(step, 2, 30);
      expectClosed(step, 3, 40);
    } while (std::next_permutation(order.begin(), order.end()));
    EXPECT_EQ(countersOf(runtimeOf(step)).allocations[0][ZERO_RT_ROLE_STAGING],
              0);
  });
}

// A bucket in memory of its own is open from the beginning, wherever it is in
// the order.
TEST(Sequence, MemoryOfItsOwnIsOpenAtOnce) {
  LibraryBuilder library = makeLibrary();
  library.buffers[3].shares = -1;
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectOk(calls.begin_backward(step, 0));
    Gradient last(40), third(30);
    last.pass(step, 3);
    EXPECT_EQ(last.release, 0u);
    third.pass(step, 2);
    EXPECT_NE(third.release, 0u);
    last.data.assign(3, -1);
    expectOk(calls.apply(step, nullptr, 0, nullptr));
    expectClosed(step, 2, 30);
    expectClosed(step, 3, 40);
  });
}

// A gradient of any number of pieces is complete when the backward pass ends,
// and not before.
TEST(Sequence, AnyNumberOfPieces) {
  LibraryBuilder library = makeLibrary();
  library.parameters[1].uses = ZERO_RT_USES_ANY;
  library.parameters[1].optional = 0;
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    for (int pieces = 0; pieces < 5; ++pieces) {
      expectOk(calls.begin_backward(step, 0));
      Gradient first(10), piece(20);
      first.pass(step, 0);
      EXPECT_EQ(step->get()->sequence.closed, 1);
      for (int i = 0; i < pieces; ++i)
        piece.pass(step, 1);
      EXPECT_EQ(step->get()->sequence.closed, 1);
      EXPECT_EQ(step->get()->window.arrivals(1), pieces);
      expectOk(calls.apply(step, nullptr, 0, nullptr));
      EXPECT_EQ(step->get()->sequence.closed, kBuckets);
      for (int i = 0; i < 3; ++i)
        EXPECT_EQ(closed(step, 1)[i], float(pieces) * (20 + float(i)));
    }
  });
}

TEST(Sequence, AnyNumberOfPiecesIsAtLeastOne) {
  LibraryBuilder library = makeLibrary();
  library.parameters[1].uses = ZERO_RT_USES_ANY;
  for (int optional : {0, 1})
    for (int pieces = 0; pieces < 3; ++pieces) {
      library.parameters[1].optional = optional;
      Window window(library.get());
      window.begin(/*isAsLast=*/false);
      for (int i = 0; i < pieces; ++i)
        window.arrive(1);
      window.close();
      EXPECT_EQ(window.missing(), pieces == 0 && !optional ? 1 : 0);
      EXPECT_EQ(window.delivered(1), pieces == 0 ? 0 : 1);
    }
}

// Every gradient is packed before apply counts it.
TEST(Sequence, CountsGradientsThatWait) {
  LibraryBuilder library = makeLibrary();
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    Gradient last(40), second(20);
    for (bool applies : {false, true}) {
      expectOk(calls.begin_backward(step, 0));
      last.pass(step, 3);
      second.pass(step, 1);
      second.pass(step, 1);
      auto view = sized<zero_rt_tensor>();
      double beta = 0;
      expectOk(calls.gradient_slot(step, 2, nullptr, &view, &beta));
      std::fill_n(static_cast<float *>(view.data), 3, 1.0f);
      if (applies)
        expectOk(calls.gradient_ready(step, 2, nullptr));
      expectOk(applies ? calls.apply(step, nullptr, 0, nullptr)
                       : calls.discard(step));
    }
    const double *counts = slotsOf(step);
    EXPECT_EQ(std::vector<double>(counts, counts + kBuckets),
              (std::vector<double>{0, 1, 1, 1}));
  });
}

// A wait that only the caller could end says so; closing the backward pass ends
// it.
TEST(Sequence, WaitingForAClosedBucketIsAnError) {
  LibraryBuilder library = makeLibrary();
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectOk(calls.begin_backward(step, 0));
    Gradient last(40), first(10);
    last.pass(step, 3);
    EXPECT_NE(last.release, 0u);
    expectStatus(ZERO_RT_PROTOCOL, zero_rt_wait(runtimeOf(step), last.release),
                 "is the release of a gradient whose bucket is not open yet");
    zero_rt_runtime *runtime = runtimeOf(step);
    int32_t hasPassed = 1;
    expectOk(zero_rt_has_passed(runtime, last.release, &hasPassed));
    EXPECT_EQ(hasPassed, 0);
    expectOk(zero_rt_has_passed(runtime, 0, &hasPassed));
    EXPECT_EQ(hasPassed, 1);
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 zero_rt_has_passed(runtime, last.release + 1, &hasPassed),
                 "was never given out");
    EXPECT_EQ(hasPassed, 0);
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 zero_rt_has_passed(runtime, last.release, nullptr),
                 "out_passed is null");
    expectStatus(ZERO_RT_INVALID_ARGUMENT,
                 zero_rt_wait(runtimeOf(step), last.release + 1),
                 "was never given out");
    first.pass(step, 0);
    EXPECT_EQ(first.release, 0u);
    // It counts as arrived while it waits.
    zero_rt_tensor tensor = tensorOf(ZERO_RT_F32, last.data);
    expectStatus(ZERO_RT_PROTOCOL,
                 calls.gradient(step, 3, &tensor, nullptr, nullptr),
                 "gradient of 'w3' arrived 2 times in this backward pass");
    expectOk(calls.apply(step, nullptr, 0, nullptr));
    expectOk(zero_rt_has_passed(runtime, last.release, &hasPassed));
    EXPECT_EQ(hasPassed, 1);
    expectOk(zero_rt_wait(runtime, last.release));
    expectClosed(step, 0, 10);
    expectClosed(step, 3, 40);
    for (int i = 0; i < 4; ++i) // never came
      EXPECT_EQ(closed(step, 1)[i] + closed(step, 2)[i], 0);
  });
}

// Without a release the tensor is free at once: what waits is a copy.
TEST(Sequence, CopiesWithoutARelease) {
  LibraryBuilder library = makeLibrary();
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectOk(calls.begin_backward(step, 0));
    std::vector<float> data{30, 31, 32};
    zero_rt_tensor tensor = tensorOf(ZERO_RT_F32, data);
    expectOk(calls.gradient(step, 2, &tensor, nullptr, nullptr));
    data.assign(3, -1);
    EXPECT_EQ(stagingBytes(step), 12);
    expectOk(calls.apply(step, nullptr, 0, nullptr));
    EXPECT_EQ(stagingBytes(step), 0);
    expectClosed(step, 2, 30);
  });
}

// With a release it is lent: whoever writes it meanwhile is told, if
// preconditions are checked.
TEST(Sequence, WhatIsLentStaysAsItCame) {
  LibraryBuilder library = makeLibrary();
  Options options;
  options.checkPreconditions = true;
  auto run = [](bool isWritten) {
    return [=](int32_t, zero_rt_step *step) {
      expectOk(callsOf(step).begin_backward(step, 0));
      Gradient gradient(30);
      gradient.pass(step, 2);
      if (isWritten)
        gradient.data[1] = -1;
      zero_rt_status status = callsOf(step).apply(step, nullptr, 0, nullptr);
      if (!isWritten) {
        expectOk(status);
        expectClosed(step, 2, 30);
        return;
      }
      expectStatus(ZERO_RT_PROTOCOL, status,
                   "gradient of 'w2' was written before it was taken");
      expectStatus(ZERO_RT_POISONED, callsOf(step).begin_backward(step, 0),
                   "apply failed: gradient of 'w2' was written");
    };
  };
  runSteps(library.get(), run(false), options);
  runSteps(library.get(), run(true), options);
}

// A slot of a later bucket is memory of its own, packed when the bucket opens.
TEST(Sequence, SlotsOfLaterBuckets) {
  LibraryBuilder library = makeLibrary();
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    for (bool opensBefore : {false, true}) {
      expectOk(calls.begin_backward(step, 0));
      auto slot = sized<zero_rt_tensor>();
      double beta = -1;
      expectOk(calls.gradient_slot(step, 2, nullptr, &slot, &beta));
      EXPECT_EQ(beta, 0);
      EXPECT_EQ(stagingBytes(step), 12);
      auto again = sized<zero_rt_tensor>();
      expectOk(calls.gradient_slot(step, 2, nullptr, &again, &beta));
      EXPECT_EQ(again.data, slot.data);
      Gradient first(10);
      if (opensBefore)
        first.pass(step, 0);
      for (int i = 0; i < 3; ++i)
        static_cast<float *>(slot.data)[i] = 30 + float(i);
      expectOk(calls.gradient_ready(step, 2, nullptr));
      expectOk(calls.apply(step, nullptr, 0, nullptr));
      EXPECT_EQ(stagingBytes(step), 0);
      expectClosed(step, 2, 30);
    }
  });
}

// A slot stays where it is, whatever opens in between, and is not forgotten
// because another piece of the same gradient was packed.
TEST(Sequence, ASlotKeepsItsPlace) {
  LibraryBuilder library = makeLibrary();
  library.parameters[3].uses = 2;
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectOk(calls.begin_backward(step, 0));
    Gradient piece(40), first(10), second(20);
    piece.pass(step, 3);
    auto slot = sized<zero_rt_tensor>();
    auto again = sized<zero_rt_tensor>();
    double beta = -1;
    expectOk(calls.gradient_slot(step, 3, nullptr, &slot, &beta));
    first.pass(step, 0);
    second.pass(step, 1);
    second.pass(step, 1); // opens the last bucket
    EXPECT_EQ(step->get()->sequence.closed, 2);
    expectOk(calls.gradient_slot(step, 3, nullptr, &again, &beta));
    EXPECT_EQ(again.data, slot.data);
    EXPECT_EQ(beta, 0);
    zero_rt_tensor tensor = tensorOf(ZERO_RT_F32, piece.data);
    expectStatus(ZERO_RT_PROTOCOL,
                 calls.gradient(step, 3, &tensor, nullptr, nullptr),
                 "while its gradient view is handed out");
    for (int i = 0; i < 3; ++i)
      static_cast<float *>(slot.data)[i] = 100;
    expectOk(calls.gradient_ready(step, 3, nullptr));
    expectOk(calls.apply(step, nullptr, 0, nullptr));
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(closed(step, 3)[i], 140 + float(i));
  });
}

// A slot that was never declared ready is not there in the next backward pass.
TEST(Sequence, ASlotEndsWithItsBackward) {
  LibraryBuilder library = makeLibrary();
  library.addTransition(1, ZERO_RT_EVENT_ACCUMULATE, 0, {});
  library.transitions.back().sequence = 0;
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectOk(calls.begin_backward(step, 0));
    auto slot = sized<zero_rt_tensor>();
    double beta = -1;
    expectOk(calls.gradient_slot(step, 3, nullptr, &slot, &beta));
    expectOk(calls.accumulate(step));
    expectOk(calls.begin_backward(step, 0));
    EXPECT_EQ(stagingBytes(step), 0);
    expectStatus(ZERO_RT_PROTOCOL, calls.gradient_ready(step, 3, nullptr),
                 "without a gradient view");
    expectOk(calls.apply(step, nullptr, 0, nullptr));
  });
}

// Discard closes what is open, so that ranks part at one place, and drops what
// waits, slots that never became ready included.
TEST(Sequence, DiscardDropsWhatWaits) {
  LibraryBuilder library = makeLibrary();
  runSteps(library.get(), [](int32_t, zero_rt_step *step) {
    const zero_rt_calls &calls = callsOf(step);
    expectOk(calls.begin_backward(step, 0));
    Gradient last(40);
    last.pass(step, 3);
    auto slot = sized<zero_rt_tensor>();
    double beta = -1;
    expectOk(calls.gradient_slot(step, 2, nullptr, &slot, &beta));
    expectOk(calls.discard(step));
    EXPECT_EQ(stagingBytes(step), 0);
    expectOk(zero_rt_wait(runtimeOf(step), last.release));
    EXPECT_EQ(step->get()->sequence.closed, kBuckets);
  });
}

TEST(Sequence, ATableThatIsWrongIsRefused) {
  auto refuses = [](const char *message, auto &&change) {
    LibraryBuilder library = makeLibrary();
    change(library);
    expectRefused(library.get(), ZERO_RT_INTERNAL, message);
  };
  using L = LibraryBuilder;
  refuses("sequence 0: bad entries", [](L &l) { l.sequences[0].count = 5; });
  refuses("sequence 0: lists a bucket twice, or one that there is not",
          [](L &l) { l.sequenceEntries[1].bucket = 4; });
  refuses("sequence 0: lists a bucket twice",
          [](L &l) { l.sequenceEntries[1].bucket = 0; });
  refuses("sequence 0: leaves out a bucket",
          [](L &l) { l.sequences[0].count = 3; });
  refuses("sequence entry 1: bad handler",
          [](L &l) { l.sequenceEntries[1].handler = 99; });
  refuses("transition 1: bad sequence",
          [](L &l) { l.transitions[1].sequence = 1; });
  refuses("buffer 2: bad memory", [](L &l) { l.buffers[2].shares = 3; });
  refuses("buffer 2: bad memory", [](L &l) { l.buffers[2].elements = 8; });
}

} // namespace
