//===- calls.cpp - The table of calls -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/calls.h"

#include "core/runtime.h"
#include "core/status.h"
#include "core/step.h"

#include <type_traits>

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

template <typename Object> struct HandleTo;
template <> struct HandleTo<Runtime> {
  using Type = zero_rt_runtime;
};
template <> struct HandleTo<Step> {
  using Type = zero_rt_step;
};

zero_rt_status checkUsable(Call, const Runtime &) { return ZERO_RT_OK; }
zero_rt_status checkUsable(Call call, const Step &step) {
  if (!step.poisonedBy[0] || call == Call::step_destroy)
    return ZERO_RT_OK;
  return fail(ZERO_RT_POISONED, "%s: step '%s' can only be destroyed since: %s",
              callNames[size_t(call)], step.library->name, step.poisonedBy);
}

Device &deviceOf(const Runtime &runtime) { return *runtime.device; }
Device &deviceOf(const Step &step) { return step.device(); }

/// Gives |function| the object behind the handle and the checks that all calls
/// share, and stops exceptions.
template <Call call, auto function> struct Guard;
template <Call call, typename Object, typename... Arguments,
          zero_rt_status (*function)(Object *, Arguments...)>
struct Guard<call, function> {
  using Subject = typename HandleTo<Object>::Type;
  static zero_rt_status run(Subject *subject, Arguments... arguments) {
    const char *name = callNames[size_t(call)];
    RankCall rankCall;
    ZERO_RT_TRY(rankCall.begin(name, subject, Subject::theKind));
    Object *object = subject->get();
    ZERO_RT_TRY(checkUsable(call, *object));
    // The object may be gone when the call returns.
    return onDevice(deviceOf(*object), name,
                    [&] { return function(object, arguments...); });
  }
};

/// The call that makes a handle.
struct CreateStep {
  static zero_rt_status run(zero_rt_runtime *runtime,
                            const zero_rt_library *library, const void *options,
                            zero_rt_step **outStep) {
    Step *step = nullptr;
    zero_rt_status status = Guard<Call::step_create, calls::step_create>::run(
        runtime, library, options, outStep ? &step : nullptr);
    if (outStep)
      *outStep = step ? step->handle : nullptr;
    return status;
  }
};

template <Call call, auto function>
struct Entry : std::conditional_t<call == Call::step_create, CreateStep,
                                  Guard<call, function>> {};

} // namespace

const zero_rt_calls zero_rt::callTable = {
    sizeof(zero_rt_calls),
    ZERO_RT_ABI_VERSION,
#define ZERO_RT_STEP_CALL(NAME, ARGUMENTS) Entry<Call::NAME, calls::NAME>::run,
#define ZERO_RT_PROGRAM_CALL(NAME, ARGUMENTS)                                  \
  Entry<Call::NAME, calls::NAME>::run,
#include "zero_rt/calls.def"
};
