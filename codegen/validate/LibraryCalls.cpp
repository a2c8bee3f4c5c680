//===- LibraryCalls.cpp - What the handlers of a library call -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/validate/LibraryCalls.h"

using namespace zero;

/// The event that recorded handlers are given.
static constexpr zero_rt_event kArrival = {ZERO_RT_EVENT_ARRIVE, 0, nullptr};

static std::string arrivalText(const zero_rt_event *arrival) {
  return arrival == &kArrival ? "the gradient of the event" : "another event";
}

Operands CallDescriber::set_role(int32_t buffer, int32_t role) const {
  return {names.buffer(buffer), "role " + std::to_string(role)};
}

Operands CallDescriber::pack(const zero_rt_event *arrival,
                             int32_t accumulate) const {
  return {arrivalText(arrival), accumulate ? "add" : "store"};
}

Operands CallDescriber::wait_writable(const zero_rt_event *arrival) const {
  return {arrivalText(arrival)};
}

Operands CallDescriber::run_scalars(int32_t program) const {
  return {"program " + std::to_string(program)};
}

Operands CallDescriber::all_reduce_scalars(int32_t first, int32_t count,
                                           int32_t over, int32_t stream) const {
  return {names.slot(first), std::to_string(count), names.axes(over),
          streamText(stream)};
}

Operands CallDescriber::launch(int32_t kernel, const int32_t *buffers,
                               int32_t numBuffers, int32_t table,
                               int64_t elements, int32_t own, int32_t sumSlot,
                               int32_t stream) const {
  // Kernels have no names in a library, only places.
  Operands operands{"kernel " + std::to_string(kernel)};
  for (int32_t i = 0; i < numBuffers; ++i)
    operands.push_back(names.buffer(buffers[i]));
  for (std::string &segment : names.segments(table))
    operands.push_back(std::move(segment));
  operands.push_back(std::to_string(elements) + " elements");
  operands.push_back("own " + names.axes(own));
  operands.push_back("sum " + names.slot(sumSlot));
  operands.push_back(streamText(stream));
  return operands;
}

//===----------------------------------------------------------------------===//
// A table of calls that records
//===----------------------------------------------------------------------===//

namespace {
/// Stands for a runtime and for a step. The first word is what compiled code
/// reads.
struct Recording {
  const zero_rt_calls *calls;
  const zero_rt_library *library = nullptr;
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
template <auto member, auto describe, const char *name> struct ProgramRow;

/// No handler makes these.
template <typename... Args, zero_rt_status (*zero_rt_calls::*member)(Args...)>
struct StepRow<member> {
  static zero_rt_status run(Args...) { return ZERO_RT_UNSUPPORTED; }
};

template <typename... Args,
          zero_rt_status (*zero_rt_calls::*member)(zero_rt_step *, Args...),
          Operands (CallDescriber::*describe)(Args...) const, const char *name>
struct ProgramRow<member, describe, name> {
  static zero_rt_status run(zero_rt_step *step, Args... args) {
    Recording &recording = getRecording(step);
    CallDescriber describer(*recording.library);
    recording.lines.push_back(callText(name, (describer.*describe)(args...)));
    bool fails = int64_t(recording.lines.size()) == recording.failing + 1;
    return fails ? ZERO_RT_TIMEOUT : ZERO_RT_OK;
  }
};
} // namespace

static zero_rt_status recordCreate(zero_rt_runtime *runtime,
                                   const zero_rt_library *library, const void *,
                                   zero_rt_step **) {
  reinterpret_cast<Recording *>(runtime)->library = library;
  return ZERO_RT_OK;
}

static const zero_rt_calls &getTable() {
  static const zero_rt_calls table = [] {
    zero_rt_calls calls = {
        sizeof(zero_rt_calls),
        ZERO_RT_ABI_VERSION,
#define ZERO_RT_STEP_CALL(NAME, ARGUMENTS) StepRow<&zero_rt_calls::NAME>::run,
#define ZERO_RT_PROGRAM_CALL(NAME, ARGUMENTS)                                  \
  ProgramRow<&zero_rt_calls::NAME, &CallDescriber::NAME, names::NAME>::run,
#include "zero_rt/calls.def"
    };
    calls.step_create = recordCreate;
    return calls;
  }();
  return table;
}

HandlerRun zero::recordHandler(const zero_rt_library &library, int64_t handler,
                               int64_t failing) {
  Recording recording = {&getTable(), &library};
  recording.failing = failing;
  zero_rt_status status = library.handlers[handler](
      reinterpret_cast<zero_rt_step *>(&recording), &kArrival);
  return {std::move(recording.lines), status};
}

const zero_rt_library *zero::recordLibrary(void *create) {
  Recording recording = {&getTable()};
  auto *call = reinterpret_cast<zero_rt_status (*)(
      zero_rt_runtime *, const void *, zero_rt_step **)>(create);
  zero_rt_step *step = nullptr;
  zero_rt_status status =
      call(reinterpret_cast<zero_rt_runtime *>(&recording), nullptr, &step);
  return status == ZERO_RT_OK ? recording.library : nullptr;
}
