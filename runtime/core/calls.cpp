//===- calls.cpp - The table of calls -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/calls.h"

#include "core/runtime.h"
#include "core/status.h"
#include "core/step.h"

using namespace zero_rt;

namespace {

enum class Call {
#define ZERO_RT_STEP_CALL(NAME, ARGUMENTS) NAME,
#define ZERO_RT_PROGRAM_CALL(NAME, ARGUMENTS) NAME,
#include "zero_rt/calls.def"
};

constexpr const char *callNames[] = {
#define ZERO_RT_STEP_CALL(NAME, ARGUMENTS) #NAME,
#define ZERO_RT_PROGRAM_CALL(NAME, ARGUMENTS) #NAME,
#include "zero_rt/calls.def"
};

zero_rt_status checkSubject(Call call, const zero_rt_runtime *runtime) {
  if (!runtime)
    return fail(ZERO_RT_INVALID_ARGUMENT, "%s: runtime is null",
                callNames[size_t(call)]);
  if (runtime->handle != Handle::Runtime)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "%s: this is no runtime, or one that was destroyed",
                callNames[size_t(call)]);
  return ZERO_RT_OK;
}

zero_rt_status checkSubject(Call call, const zero_rt_step *step) {
  if (!step)
    return fail(ZERO_RT_INVALID_ARGUMENT, "%s: step is null",
                callNames[size_t(call)]);
  if (step->handle != Handle::Step)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "%s: this is no step, or one that was destroyed",
                callNames[size_t(call)]);
  if (step->poisonedBy[0] && call != Call::step_destroy)
    return fail(ZERO_RT_POISONED,
                "%s: step '%s' can only be destroyed since: %s",
                callNames[size_t(call)], step->library->name, step->poisonedBy);
  return ZERO_RT_OK;
}

Device &deviceOf(const zero_rt_runtime &runtime) { return *runtime.device; }
Device &deviceOf(const zero_rt_step &step) { return step.device(); }

/// Gives |function| the checks that all calls share, and stops exceptions.
template <Call call, auto function> struct Guard;
template <Call call, typename Subject, typename... Arguments,
          zero_rt_status (*function)(Subject *, Arguments...)>
struct Guard<call, function> {
  static zero_rt_status run(Subject *subject, Arguments... arguments) {
    ZERO_RT_TRY(checkSubject(call, subject));
    // The subject may be gone when the call returns.
    return onDevice(deviceOf(*subject), callNames[size_t(call)],
                    [&] { return function(subject, arguments...); });
  }
};

} // namespace

const zero_rt_calls zero_rt::callTable = {
    sizeof(zero_rt_calls),
    ZERO_RT_ABI_VERSION,
#define ZERO_RT_STEP_CALL(NAME, ARGUMENTS) Guard<Call::NAME, calls::NAME>::run,
#define ZERO_RT_PROGRAM_CALL(NAME, ARGUMENTS)                                  \
  Guard<Call::NAME, calls::NAME>::run,
#include "zero_rt/calls.def"
};
