//===- Timeline.h - When a step does what, and what is alive ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_EXPLAIN_TIMELINE_H
#define ZERO_TOOLS_ZERO_EXPLAIN_TIMELINE_H

#include "codegen/host/Stages.h"
#include "tools/zero-explain/Machine.h"

namespace zero {

constexpr size_t kNumStreams = zrt::getMaxEnumValForStream() + 1;

/// From |start| to |finish|, in seconds since the begin of the step.
struct Span {
  double start = 0, finish = 0;
};

/// A call of the runtime that takes time, or the caller's own work.
struct TimedCall {
  zrt::Stream stream;
  Span span;
  std::string name;  // "reduce_scatter"
  std::string what;  // the buffer or the bucket
  int64_t bytes = 0; // sent, copied, or read and written
  std::string after; // the event for which the call waited last; empty: none
};

/// The memory of a buffer, and when it is alive: from a write to the last read
/// of what was written. Parameters and state are alive all the time, but where
/// a unit is unsharded.
struct TimedBuffer {
  std::string name;
  zrt::Role role;
  zrt::Space space;
  int64_t bytes = 0;
  std::vector<Span> alive;
};

/// Part of a step. Phases may overlap: a backward pass has not ended before its
/// last reduction has, and apply begins when the caller says so.
struct Phase {
  const char *name;
  Span span;
};

struct Timeline {
  std::vector<TimedCall> calls; // in the order in which they were queued
  std::vector<TimedBuffer> buffers;
  std::vector<Phase> phases;
  double work = 0;   // of the caller: forward and backward
  double finish = 0; // of all streams

  /// How long the caller waits for the step in all.
  double getExposed() const { return finish - work; }
};

/// The buffers of |timeline| in |space| that are alive when most bytes are,
/// within |span|.
std::vector<const TimedBuffer *> findPeak(const Timeline &timeline,
                                          zrt::Space space, Span span);

/// A step of one backward pass, hinted as the last one, on one rank of |stage|
/// and on |machine|. A forward pass takes |backward| / 2 seconds, and a
/// backward pass |backward|. Both are divided over the parameters by their
/// elements, and a gradient arrives when the work of its parameter is done. A
/// unit is gathered while those before it work. Each stream runs its calls in
/// order, after the events for which it waits; streams do not slow each other
/// down. A collective takes as long as a ring, a kernel as long as its memory.
Timeline simulateStep(const StageProgram &stage, const Machine &machine,
                      double backward);

} // namespace zero

#endif // ZERO_TOOLS_ZERO_EXPLAIN_TIMELINE_H
