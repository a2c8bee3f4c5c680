//===- traced_calls.cpp - The table of calls with a trace -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step of a rank with a trace has this table in place of the other one. So a
// rank without a trace pays nothing.
//
//===----------------------------------------------------------------------===//

#include "core/calls.h"
#include "core/runtime.h"
#include "core/step.h"
#include "core/trace.h"

using namespace zero_rt;

/// The prototypes of calls, with a type of its own for each name of
/// arguments.def.
namespace typed {
#define ZERO_RT_ARGUMENT(TYPE, NAME)                                           \
  struct NAME {                                                                \
    TYPE value;                                                                \
  };
#include "zero_rt/arguments.def"
#define ZERO_RT_STEP_CALL(NAME, ARGUMENTS) using NAME = void ARGUMENTS;
#define ZERO_RT_PROGRAM_CALL(NAME, ARGUMENTS) using NAME = void ARGUMENTS;
#include "zero_rt/calls.def"
} // namespace typed

namespace {
/// Reads the label and the stream of a call from its arguments.
class Describer {
public:
  Describer(const Step &step, Span &span) : step(step), span(span) {}

  void add(typed::zero_rt_buffer_named row) { buffer(row.value); }
  void add(typed::zero_rt_buffer_read row) { buffer(row.value); }
  void add(typed::zero_rt_buffer_written row) { buffer(row.value); }
  void add(const typed::zero_rt_kernel_buffer *rows) { buffer(rows->value); }
  void add(typed::zero_rt_bucket_filled row) {
    span.label = step.text(step.library->buckets[row.value].name);
  }
  void add(typed::zero_rt_parameter_number row) { parameter(row.value); }
  void add(const zero_rt_event *event) {
    if (event->parameter >= 0)
      parameter(event->parameter);
  }
  void add(typed::zero_rt_event_index row) {
    span.label = step.text(step.library->stream_events[row.value].name);
  }
  void add(typed::zero_rt_stream_number stream) { span.stream = stream.value; }
  template <typename Other> void add(Other) {}

private:
  void buffer(int32_t row) {
    if (!*span.label) // the first one
      span.label = step.bufferName(row);
  }
  void parameter(int32_t row) { span.label = step.parameterName(row); }

  const Step &step;
  Span &span;
};

template <typename To, typename From> To as(From from) {
  if constexpr (std::is_same_v<To, From>)
    return from;
  else if constexpr (std::is_pointer_v<To>)
    return reinterpret_cast<To>(from);
  else
    return To{from};
}

/// Runs |call| of |step|, as a range of NVTX, and writes its time and its work
/// to the trace.
template <typename Describe, typename Call>
zero_rt_status trace(const char *name, bool isOfProgram, ::zero_rt_step *handle,
                     Describe describe, Call call) {
  Step *step = handle ? handle->get() : nullptr;
  if (!step || !step->runtime->isTraced())
    return call();
  const zero_rt_counters &counters = step->runtime->counters;
  int64_t sent = counters.bytes_sent, launches = counters.launches,
          copied = counters.bytes_copied_between_spaces;
  Span span{name};
  if (isOfProgram)
    span.stream = ZERO_RT_STREAM_COMPUTE;
  describe(*step, span);
  const std::unique_ptr<Nvtx> &nvtx = step->runtime->nvtx;
  const std::unique_ptr<Trace> &trace = step->runtime->trace;
  if (nvtx)
    nvtx->push(span);
  span.begin = Trace::now();
  span.status = call();
  span.end = Trace::now();
  if (nvtx)
    nvtx->pop();
  if (!trace)
    return span.status;
  span.bytesSent = counters.bytes_sent - sent;
  span.bytesCopied = counters.bytes_copied_between_spaces - copied;
  span.launches = counters.launches - launches;
  trace->add(span);
  return span.status;
}

/// The call |member| in the table, which has the typed prototype |Prototype|.
template <auto member, typename Prototype, const char *name, bool isOfProgram>
struct Traced;

template <typename... Args,
          zero_rt_status (*zero_rt_calls::*member)(::zero_rt_step *, Args...),
          typename... Types, const char *name, bool isOfProgram>
struct Traced<member, void(::zero_rt_step *, Types...), name, isOfProgram> {
  static zero_rt_status run(::zero_rt_step *handle, Args... args) {
    return trace(
        name, isOfProgram, handle,
        [&](const Step &step, Span &span) {
          Describer describer(step, span);
          (describer.add(as<Types>(args)), ...);
        },
        [&] { return (callTable.*member)(handle, args...); });
  }
};

/// The call that makes a step: there is none yet.
template <typename... Args,
          zero_rt_status (*zero_rt_calls::*member)(zero_rt_runtime *, Args...),
          typename Prototype, const char *name>
struct Traced<member, Prototype, name, false> {
  static zero_rt_status run(zero_rt_runtime *runtime, Args... args) {
    return (callTable.*member)(runtime, args...);
  }
};
} // namespace

namespace names {
#define ZERO_RT_STEP_CALL(NAME, ARGUMENTS) static constexpr char NAME[] = #NAME;
#define ZERO_RT_PROGRAM_CALL(NAME, ARGUMENTS)                                  \
  static constexpr char NAME[] = #NAME;
#include "zero_rt/calls.def"
} // namespace names

const zero_rt_calls zero_rt::tracedCallTable = {
    sizeof(zero_rt_calls),
    ZERO_RT_ABI_VERSION,
#define ZERO_RT_STEP_CALL(NAME, ARGUMENTS)                                     \
  Traced<&zero_rt_calls::NAME, typed::NAME, names::NAME, false>::run,
#define ZERO_RT_PROGRAM_CALL(NAME, ARGUMENTS)                                  \
  Traced<&zero_rt_calls::NAME, typed::NAME, names::NAME, true>::run,
#include "zero_rt/calls.def"
};
