//===- Recorder.cpp - A table of calls that records -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Recorder.h"

#include "codegen/validate/LibraryCalls.h"

#include <cstring>

using namespace zero::test;
using zero::callText;

/// Ranks are threads, and each has a recorder.
static thread_local Recorder *current = nullptr;

namespace {
/// The arguments of program calls in a running step.
struct Describe : zero::ArgumentWords {
  using ArgumentWords::ArgumentWords;

  void addArrival(const zero_rt_event *event) override {
    put("event " + std::to_string(event->event));
    put(names.parameter(event->parameter));
    put(event->tensor ? "tensor" : "slot");
    const zero_rt_bucket_row &bucket =
        library.buckets[library.parameters[event->parameter].bucket];
    put("writable " + names.events(bucket.first_writable, bucket.num_writable));
  }
  void addProgram(int32_t program) override;
};
} // namespace

/// Marks the slots that |program| changes.
static void markWritten(zero_rt_scalar_fn program,
                        const std::vector<double> &before,
                        std::vector<bool> &written) {
  std::vector<double> after = before;
  program(after.data());
  for (size_t i = 0; i < before.size(); ++i)
    if (!(after[i] == before[i])) // so that nan counts, too
      written[i] = true;
}

/// Scalar programs have no names either; what they write is told, too. That may
/// by chance be what is there, or be left alone by a step that is skipped, so
/// they run on several values: initial ones, and such as no program writes.
void Describe::addProgram(int32_t program) {
  ArgumentWords::addProgram(program);
  std::vector<bool> written(size_t(library.num_slots));
  std::vector<double> initial(written.size()), others(written.size());
  for (size_t i = 0; i < written.size(); ++i) {
    std::memcpy(&initial[i], &library.slots[i].initial, sizeof(double));
    others[i] = 1.25 + 0.0009765625 * double(i);
  }
  for (const std::vector<double> &before : {initial, others})
    markWritten(library.scalar_programs[program], before, written);
  for (size_t i = 0; i < written.size(); ++i)
    if (written[i])
      put("writes " + names.slot(int64_t(i)));
}

namespace names {
#define ZERO_RT_STEP_CALL(NAME, ARGUMENTS) static constexpr char NAME[] = #NAME;
#define ZERO_RT_PROGRAM_CALL(NAME, ARGUMENTS)                                  \
  static constexpr char NAME[] = #NAME;
#include "zero_rt/calls.def"
} // namespace names

namespace zero::test {
struct Rows {
  template <auto member, const char *name> struct StepCall;
  template <auto member, typename Prototype, const char *name>
  struct ProgramCall;
  static const zero_rt_calls table;

  /// A step asks its runtime's table, and is asked by its own first word.
  static zero_rt_status create(zero_rt_runtime *runtime,
                               const zero_rt_library *library,
                               const void *options, zero_rt_step **outStep) {
    current->note(names::step_create);
    current->library = library;
    zero_rt_status status =
        current->real->step_create(runtime, library, options, outStep);
    if (!status)
      *reinterpret_cast<const zero_rt_calls **>(*outStep) = &table;
    return status;
  }
};

template <typename... Args, zero_rt_status (*zero_rt_calls::*member)(Args...),
          const char *name>
struct Rows::StepCall<member, name> {
  static zero_rt_status run(Args... args) {
    current->note(name);
    return (current->real->*member)(args...);
  }
};

template <typename... Args,
          zero_rt_status (*zero_rt_calls::*member)(zero_rt_step *, Args...),
          typename Prototype, const char *name>
struct Rows::ProgramCall<member, Prototype, name> {
  static zero_rt_status run(zero_rt_step *step, Args... args) {
    Describe words(*current->library);
    zero::DescribeCall<Prototype>::run(words, args...);
    current->note(callText(name, words.take()));
    return (current->real->*member)(step, args...);
  }
};

static zero_rt_calls makeTable() {
  zero_rt_calls table = {
      sizeof(zero_rt_calls),
      ZERO_RT_ABI_VERSION,
#define ZERO_RT_STEP_CALL(NAME, ARGUMENTS)                                     \
  Rows::StepCall<&zero_rt_calls::NAME, names::NAME>::run,
#define ZERO_RT_PROGRAM_CALL(NAME, ARGUMENTS)                                  \
  Rows::ProgramCall<&zero_rt_calls::NAME, zero::typed::NAME, names::NAME>::run,
#include "zero_rt/calls.def"
  };
  table.step_create = Rows::create;
  return table;
}

const zero_rt_calls Rows::table = makeTable();
} // namespace zero::test

Recorder::Recorder(zero_rt_runtime *runtime,
                   std::function<void(const std::string &)> onCall)
    : onCall(std::move(onCall)), runtime(runtime) {
  auto *word = reinterpret_cast<const zero_rt_calls **>(runtime);
  real = *word;
  *word = &Rows::table;
  current = this;
}

Recorder::~Recorder() {
  *reinterpret_cast<const zero_rt_calls **>(runtime) = real;
  current = nullptr;
}
