//===- Recorder.cpp - A table of calls that records -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Recorder.h"

#include <cstring>

using namespace zero::test;

/// Ranks are threads, and each has a recorder.
static thread_local Recorder *current = nullptr;

using Operands = std::vector<std::string>;

namespace {
/// The operands of the program calls, named as in calls.def: a call that is not
/// described here does not compile.
struct Describe {
  const zero_rt_library &library;

  std::string text(int64_t offset) const { return library.strings + offset; }
  std::string buffer(int32_t row) const {
    return text(library.buffers[row].name);
  }
  /// Axes in the order of the mesh, each with a space behind it.
  std::string axes(int32_t set) const {
    std::string names;
    for (int64_t a = 0; a < library.num_axes; ++a)
      if (library.axis_sets[set] >> a & 1)
        names += text(library.axes[a].name) + " ";
    return names;
  }
  /// Consecutive slots of one name are one symbol.
  std::string slot(int64_t row) const {
    int64_t first = row;
    while (first > 0 &&
           library.slots[first - 1].name == library.slots[row].name)
      --first;
    return slotText(text(library.slots[row].name), row - first);
  }

  Operands allocate(int32_t b) const { return {buffer(b)}; }
  Operands release(int32_t b) const { return {buffer(b)}; }
  Operands set_role(int32_t b, int32_t role) const {
    return {buffer(b), "role " + std::to_string(role)};
  }
  Operands pack(const zero_rt_event *event, int32_t accumulate) const {
    return {"event " + std::to_string(event->event),
            text(library.parameters[event->parameter].name),
            event->tensor ? "tensor" : "slot", accumulate ? "add" : "store"};
  }
  Operands fill_missing(int32_t bucket) const {
    return {text(library.buckets[bucket].name)};
  }
  Operands launch(int32_t kernel, const int32_t *buffers, int32_t numBuffers,
                  int32_t table, int64_t elements, int32_t own, int32_t sumSlot,
                  int32_t on) const;
  Operands run_scalars(int32_t program) const;
  Operands count_arrivals(int32_t backwards, int32_t missing) const {
    return {slot(backwards), slot(missing)};
  }
  Operands all_reduce(int32_t from, int32_t to, int32_t over,
                      int32_t on) const {
    return {buffer(from), buffer(to), axes(over), streamText(on)};
  }
  Operands reduce_scatter(int32_t from, int32_t to, int32_t over,
                          int32_t on) const {
    return {buffer(from), buffer(to), axes(over), streamText(on)};
  }
  Operands reduce_scatter_add(int32_t from, int32_t to, int32_t over,
                              int32_t on) const {
    return {buffer(from), buffer(to), axes(over), streamText(on)};
  }
  Operands keep_on_root(int32_t b, int32_t over) const {
    return {buffer(b), axes(over)};
  }
  Operands all_gather(int32_t b, int32_t over, int32_t on) const {
    return {buffer(b), axes(over), streamText(on)};
  }
  Operands count_replicated_once(int32_t row, int32_t over) const {
    return {slot(row), axes(over)};
  }
  Operands all_reduce_scalars(int32_t first, int32_t count, int32_t over,
                              int32_t on) const {
    return {slot(first), std::to_string(count), axes(over), streamText(on)};
  }
  Operands copy(int32_t from, int32_t to, int32_t on) const {
    return {buffer(from), buffer(to), streamText(on)};
  }
  Operands commit(int32_t verdict) const { return {slot(verdict)}; }
  std::string event(int64_t row) const {
    const zero_rt_stream_event_row &event = library.stream_events[row];
    return text(event.name) + " of " + streamText(event.stream);
  }
  Operands record(int32_t row) const { return {event(row)}; }
  Operands wait(int32_t row, int32_t on) const {
    return {event(row), streamText(on)};
  }
  Operands wait_writable(const zero_rt_event *arrival) const {
    const zero_rt_bucket_row &bucket =
        library.buckets[library.parameters[arrival->parameter].bucket];
    Operands events;
    for (int64_t i = 0; i < bucket.num_writable; ++i)
      events.push_back(event(library.event_lists[bucket.first_writable + i]));
    return events;
  }
  Operands copy_scalars() const { return {}; }
};
} // namespace

Operands Describe::launch(int32_t kernel, const int32_t *buffers,
                          int32_t numBuffers, int32_t table, int64_t elements,
                          int32_t own, int32_t sumSlot, int32_t on) const {
  // Kernels have no names in a library, only places.
  Operands operands{"kernel " + std::to_string(kernel)};
  for (int32_t i = 0; i < numBuffers; ++i)
    operands.push_back(buffer(buffers[i]));
  const zero_rt_table_row &row = library.tables[table];
  for (int64_t i = row.first; i < row.first + row.count; ++i) {
    const zero_rt_segment_row &segment = library.segments[i];
    operands.push_back(
        segmentText(segment.begin, segment.end,
                    segment.scalars < 0 ? "none" : slot(segment.scalars)));
  }
  operands.push_back(std::to_string(elements) + " elements");
  operands.push_back(own >= 0 ? "own " + axes(own) : "all");
  operands.push_back(sumSlot < 0 ? "no sum" : "sum " + slot(sumSlot));
  operands.push_back(streamText(on));
  return operands;
}

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
Operands Describe::run_scalars(int32_t program) const {
  Operands operands{"program " + std::to_string(program)};
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
      operands.push_back("writes " + slot(int64_t(i)));
  return operands;
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
  template <auto member, auto describe, const char *name> struct ProgramCall;
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
          Operands (Describe::*describe)(Args...) const, const char *name>
struct Rows::ProgramCall<member, describe, name> {
  static zero_rt_status run(zero_rt_step *step, Args... args) {
    Describe describer{*current->library};
    current->note(callText(name, (describer.*describe)(args...)));
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
  Rows::ProgramCall<&zero_rt_calls::NAME, &Describe::NAME, names::NAME>::run,
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
