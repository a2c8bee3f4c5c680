//===- LibraryCalls.cpp - What the handlers of a library call -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/validate/LibraryCalls.h"

using namespace zero;

/// The event that recorded handlers are given.
static constexpr zero_rt_event kArrival = {ZERO_RT_EVENT_ARRIVE, 0, nullptr};

void ArgumentWords::addArrival(const zero_rt_event *arrival) {
  put(arrival == &kArrival ? "the gradient of the event" : "another event");
}

//===----------------------------------------------------------------------===//
// A table of calls that records
//===----------------------------------------------------------------------===//

namespace {
/// Stands for a step. The first word is what compiled code reads.
struct Recording {
  const zero_rt_calls *calls;
  const zero_rt_library *library;
  std::vector<std::string> lines = {};
  int64_t failing = -1;
};
} // namespace

static Recording &getRecording(zero_rt_step *step) {
  return *reinterpret_cast<Recording *>(step);
}

namespace names {
#define ZERO_RT_STEP_CALL(NAME, ARGUMENTS)
#define ZERO_RT_PROGRAM_CALL(NAME, ARGUMENTS)                                  \
  static constexpr char NAME[] = #NAME;
#include "zero_rt/calls.def"
} // namespace names

namespace {
template <auto member> struct StepRow;
template <auto member, typename Prototype, const char *name> struct ProgramRow;

/// No handler makes these.
template <typename... Args, zero_rt_status (*zero_rt_calls::*member)(Args...)>
struct StepRow<member> {
  static zero_rt_status run(Args...) { return ZERO_RT_UNSUPPORTED; }
};

template <typename... Args,
          zero_rt_status (*zero_rt_calls::*member)(zero_rt_step *, Args...),
          typename Prototype, const char *name>
struct ProgramRow<member, Prototype, name> {
  static zero_rt_status run(zero_rt_step *step, Args... args) {
    Recording &recording = getRecording(step);
    ArgumentWords words(*recording.library);
    DescribeCall<Prototype>::run(words, args...);
    recording.lines.push_back(callText(name, words.take()));
    bool fails = int64_t(recording.lines.size()) == recording.failing + 1;
    return fails ? ZERO_RT_TIMEOUT : ZERO_RT_OK;
  }
};
} // namespace

static constexpr zero_rt_calls kTable = {
    sizeof(zero_rt_calls),
    ZERO_RT_ABI_VERSION,
#define ZERO_RT_STEP_CALL(NAME, ARGUMENTS) StepRow<&zero_rt_calls::NAME>::run,
#define ZERO_RT_PROGRAM_CALL(NAME, ARGUMENTS)                                  \
  ProgramRow<&zero_rt_calls::NAME, typed::NAME, names::NAME>::run,
#include "zero_rt/calls.def"
};

HandlerRun zero::recordHandler(const zero_rt_library &library, int64_t handler,
                               int64_t failing) {
  Recording recording = {&kTable, &library};
  recording.failing = failing;
  const zero_rt_handler_row &row = library.handler_calls[handler];
  zero_rt_status status = library.make_calls(
      reinterpret_cast<zero_rt_step *>(&recording), &kArrival,
      library.call_words + row.first, row.count, library.call_lists);
  return {std::move(recording.lines), status};
}
