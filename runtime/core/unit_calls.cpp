//===- unit_calls.cpp - Units of parameters that ranks shard --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The proof shows that an unsharded unit holds its parameters as long as nobody
// applies the step or takes the memory of the unit. This file refuses both.
//
// A unit that was gathered ahead has no reader yet, so it gives way to both.
// Gathers are collective, but giving one up is not: ranks do it at the same
// call, since it depends on their sequence of calls only.
//
//===----------------------------------------------------------------------===//

#include "core/calls.h"
#include "core/protocol.h"
#include "core/stages.h"
#include "core/state_entries.h"
#include "core/status.h"
#include "core/units.h"

#include <algorithm>

using namespace zero_rt;
using Phase = UnitState::Phase;

static const char *unitName(const Step &step, int64_t unit) {
  return step.text(step.library->units[unit].name);
}

static zero_rt_status checkUnit(const Step &step, const char *call,
                                int32_t unit) {
  if (unit >= 0 && unit < step.library->num_units) {
    if (!isElsewhere(step.library->units[unit]))
      return ZERO_RT_OK;
    return failElsewhere(
        step, std::string(call) + " of '" + unitName(step, unit) + "': it",
        firstRankWhere(*step.whole, [&](const zero_rt_library &stage) {
          return !isElsewhere(stage.units[unit]);
        }));
  }
  return fail(ZERO_RT_INVALID_ARGUMENT,
              "%s: unit %d is out of range, step '%s' has %lld", call, unit,
              step.library->name, (long long)step.library->num_units);
}

/// Runs a handler of |unit|. The caller's stream waits for the events |waits|
/// later.
static zero_rt_status runUnit(Step &step, int64_t unit, int32_t event,
                              const CallerStream &caller,
                              std::vector<int64_t> &waits, const char *call) {
  const zero_rt_unit_row &row = step.library->units[unit];
  step.caller = caller;
  step.caller.unitWaits = &waits;
  zero_rt_status status = runHandler(
      step, event == ZERO_RT_EVENT_UNSHARD ? row.unshard : row.reshard,
      {event, -1, nullptr}, call);
  step.caller = {};
  return status;
}

static zero_rt_status runGather(Step &step, int64_t unit, const char *call) {
  UnitState &state = step.units[size_t(unit)];
  state.waits.clear();
  ZERO_RT_TRY(
      runUnit(step, unit, ZERO_RT_EVENT_UNSHARD, {}, state.waits, call));
  state.phase = Phase::Gathered;
  return ZERO_RT_OK;
}

static zero_rt_status runReshard(Step &step, int64_t unit,
                                 const CallerStream &caller, const char *call) {
  UnitState &state = step.units[size_t(unit)];
  state.phase = Phase::Sharded;
  return runUnit(step, unit, ZERO_RT_EVENT_RESHARD, caller, state.waits, call);
}

/// Gives up the memory of |unit|, which was gathered ahead and not used. For
/// the handler it is as if a stream of the caller had waited for the gather.
static zero_rt_status giveUp(Step &step, int64_t unit, const char *call) {
  const std::vector<int64_t> &waits = step.units[size_t(unit)].waits;
  Signal behind = nullptr;
  if (!waits.empty()) {
    int64_t stream = step.library->stream_events[waits.back()].stream;
    for (int64_t event : waits)
      ZERO_RT_TRY(step.wait(event, Stream(stream)));
    ZERO_RT_TRY(step.on(int32_t(stream), call,
                        [&] { return step.device().record(&behind); }));
  }
  return runReshard(step, unit,
                    {CallerStream::Delivery::Earlier, nullptr, &behind}, call);
}

zero_rt_status zero_rt::requireSharded(Step &step, const char *call) {
  for (size_t u = 0; u < step.units.size(); ++u)
    if (step.units[u].phase == Phase::Unsharded)
      return fail(ZERO_RT_PROTOCOL,
                  "%s: unit '%s' is unsharded; call reshard first", call,
                  unitName(step, int64_t(u)));
  for (size_t u = 0; u < step.units.size(); ++u)
    if (step.units[u].phase == Phase::Gathered)
      ZERO_RT_TRY(giveUp(step, int64_t(u), call));
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::checkNotResharded(const Step &step, int32_t parameter) {
  int64_t unit =
      unitOf(*step.library, step.library->parameters[parameter].bucket);
  if (unit < 0 || !step.sequence.resharded[size_t(unit)])
    return ZERO_RT_OK;
  return fail(ZERO_RT_PROTOCOL,
              "gradient of '%s' arrives after its unit '%s' was resharded in "
              "this backward pass; reshard a unit after its last gradient",
              step.parameterName(parameter), unitName(step, unit));
}

zero_rt_status calls::find_unit(Step *step, const char *name,
                                int32_t *out_unit) {
  if (!name || !out_unit)
    return fail(ZERO_RT_INVALID_ARGUMENT, "find_unit: %s is null",
                name ? "out_unit" : "name");
  const zero_rt_library &library = *step->library;
  *out_unit = -1;
  for (int64_t u = 0; u < library.num_units; ++u)
    if (std::string_view(name) == unitName(*step, u)) {
      *out_unit = int32_t(u);
      return ZERO_RT_OK;
    }
  if (library.num_units == 0)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "no unit '%s': each rank keeps all parameters of '%s'; compile "
                "it at stage 3",
                name, library.name);
  return fail(ZERO_RT_INVALID_ARGUMENT,
              "no unit '%s' in '%s', whose first unit is '%s'", name,
              library.name, unitName(*step, 0));
}

zero_rt_status calls::unit_of(Step *step, int32_t parameter,
                              int32_t *out_unit) {
  if (!out_unit)
    return fail(ZERO_RT_INVALID_ARGUMENT, "unit_of: out_unit is null");
  *out_unit = -1;
  const zero_rt_library &library = *step->library;
  if (const zero_rt_frozen_row *frozen = findFrozen(library, parameter)) {
    *out_unit = isElsewhere(*frozen) ? -1 : int32_t(frozen->unit);
    return ZERO_RT_OK;
  }
  // On another pipeline stage a parameter is of no unit.
  if (parameter < 0 || parameter >= library.num_parameters)
    return checkParameter(*step, parameter);
  if (int64_t bucket = library.parameters[parameter].bucket; bucket >= 0)
    *out_unit = int32_t(unitOf(library, bucket));
  return ZERO_RT_OK;
}

/// The other units that are gathered or unsharded in memory of |unit|.
static std::vector<int64_t> findSharers(const Step &step, int64_t unit) {
  const std::vector<int64_t> &own = step.index.memoriesOf(unit);
  std::vector<int64_t> sharers;
  for (int64_t other = 0; other < step.library->num_units; ++other) {
    if (other == unit || step.units[size_t(other)].phase == Phase::Sharded)
      continue;
    for (int64_t memory : step.index.memoriesOf(other))
      if (std::binary_search(own.begin(), own.end(), memory)) {
        sharers.push_back(other);
        break;
      }
  }
  return sharers;
}

/// Gathers |unit| ahead, if its memory is free.
static zero_rt_status gatherAhead(Step &step, int64_t unit, const char *call) {
  if (step.units[size_t(unit)].phase != Phase::Sharded ||
      !findSharers(step, unit).empty())
    return ZERO_RT_OK;
  ZERO_RT_TRY(requireWhole(step, call));
  return runGather(step, unit, call);
}

zero_rt_status calls::prefetch(Step *step, int32_t unit) {
  ZERO_RT_TRY(checkUnit(*step, "prefetch", unit));
  const zero_rt_transition_row *row;
  ZERO_RT_TRY(findTransition(*step, ZERO_RT_EVENT_UNSHARD, "prefetch", &row));
  return gatherAhead(*step, unit, "prefetch");
}

zero_rt_status calls::unshard(Step *step, int32_t unit,
                              zero_rt_stream *stream) {
  ZERO_RT_TRY(checkUnit(*step, "unshard", unit));
  const zero_rt_transition_row *row;
  ZERO_RT_TRY(findTransition(*step, ZERO_RT_EVENT_UNSHARD, "unshard", &row));
  UnitState &state = step->units[size_t(unit)];
  if (state.phase == Phase::Unsharded)
    return fail(ZERO_RT_PROTOCOL, "unshard of '%s': it is unsharded already",
                unitName(*step, unit));
  std::vector<int64_t> sharers;
  if (state.phase == Phase::Sharded) {
    sharers = findSharers(*step, unit);
    for (int64_t other : sharers)
      if (step->units[size_t(other)].phase == Phase::Unsharded)
        return fail(ZERO_RT_PROTOCOL,
                    "unshard of '%s': unit '%s' is unsharded and uses its "
                    "memory; reshard that first",
                    unitName(*step, unit), unitName(*step, other));
    ZERO_RT_TRY(requireWhole(*step, "unshard"));
  }
  ZERO_RT_TRY(step->unitOrder.advance(*step, unit));
  if (state.phase == Phase::Sharded) {
    for (int64_t other : sharers)
      if (step->units[size_t(other)].phase == Phase::Gathered)
        ZERO_RT_TRY(giveUp(*step, other, "unshard"));
    ZERO_RT_TRY(runGather(*step, unit, "unshard"));
  }
  for (int64_t event : state.waits)
    if (const StreamEvent &gathered = step->events[size_t(event)];
        gathered.isRecorded)
      ZERO_RT_TRY(step->device().precede(stream, gathered.signal));
  state.phase = Phase::Unsharded;
  for (int64_t next : step->unitOrder.listAhead(*step))
    ZERO_RT_TRY(gatherAhead(*step, next, "unshard"));
  return ZERO_RT_OK;
}

zero_rt_status calls::reshard(Step *step, int32_t unit,
                              zero_rt_stream *stream) {
  ZERO_RT_TRY(checkUnit(*step, "reshard", unit));
  const zero_rt_transition_row *row;
  ZERO_RT_TRY(findTransition(*step, ZERO_RT_EVENT_RESHARD, "reshard", &row));
  if (step->units[size_t(unit)].phase != Phase::Unsharded)
    return fail(ZERO_RT_PROTOCOL, "reshard of '%s': it is not unsharded",
                unitName(*step, unit));
  ZERO_RT_TRY(closeUnit(*step, *row, unit, "reshard"));
  step->unitOrder.noteReshard(*step, unit);
  return runReshard(*step, unit, {CallerStream::Delivery::Now, stream},
                    "reshard");
}
