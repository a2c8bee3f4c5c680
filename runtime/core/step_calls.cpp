//===- step_calls.cpp - Creating and destroying a step --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Creation is collective. Each rank first does its local part, allocation
// included. Then the ranks exchange their results. A rank that failed takes
// part in this exchange, so no rank waits for a rank that gave up.
//
//===----------------------------------------------------------------------===//

#include "core/calls.h"
#include "core/cpu_features.h"
#include "core/numeric.h"
#include "core/open_library.h"
#include "core/stages.h"
#include "core/state_entries.h"
#include "core/status.h"
#include "core/step.h"
#include "core/trace.h"

#include <cstdio>

using namespace zero_rt;

namespace {

/// The message of a rank to the others.
struct CreateReport {
  uint64_t planHash = 0;
  uint64_t contentHash = 0; // 0: the library was not opened by path
  zero_rt_status status = ZERO_RT_OK;
  int8_t isImmediate = 0; // 0 or 1
  char device[27] = "";
  char name[60] = "";
  char message[516] = "";
};

} // namespace

static zero_rt_status checkCompatible(const Runtime &runtime,
                                      const zero_rt_library &library) {
  ZERO_RT_TRY(checkVersion(library));
  if (!library.name)
    return fail(ZERO_RT_INTERNAL, "library is corrupt: it has no name");
  if (library.ranks != runtime.ranks)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "library '%s' was compiled for %lld rank%s and this process "
                "group has %d; recompile with --mesh",
                library.name, (long long)library.ranks, plural(library.ranks),
                runtime.ranks);
  return checkCpuFeatures(library.cpu_features, library.name);
}

static zero_rt_status allocateAll(Step &step) {
  const zero_rt_library &library = *step.library;
  ZERO_RT_TRY(step.runtime->memory.allocate(
      ZERO_RT_SPACE_DEVICE, ZERO_RT_ROLE_SCALAR,
      library.num_slots * int64_t(sizeof(double)), "scalars", step.slotBlock));
  // Bookkeeping, which is not counted.
  step.last.values.resize(size_t(library.num_results));
  int64_t bytes = library.num_slots * int64_t(sizeof(double));
  step.last.slots =
      static_cast<double *>(step.device().allocate(ZERO_RT_SPACE_HOST, bytes));
  if (!step.last.slots)
    return fail(ZERO_RT_OUT_OF_MEMORY, "no memory for a copy of the scalars");
  for (int64_t i = 0; i < library.num_slots; ++i)
    step.last.slots[i] = bitCast<double>(library.slots[i].initial);
  ZERO_RT_TRY(step.device().copy(step.slotBlock.data, step.last.slots, bytes));
  for (int64_t b = 0; b < library.num_buffers; ++b)
    if (!library.buffers[b].on_demand && library.buffers[b].shares < 0)
      ZERO_RT_TRY(step.allocate(b));
  // These buffers use the memory of others, so no byte is counted here.
  for (int64_t b = 0; b < library.num_buffers; ++b)
    if (library.buffers[b].shares >= 0 && !library.buffers[b].on_demand) {
      const Block &owner = step.buffers[size_t(library.buffers[b].shares)];
      step.buffers[size_t(b)] = {owner.data, 0, owner.space, owner.role};
    }
  return ZERO_RT_OK;
}

static zero_rt_status prepare(Runtime &runtime, const zero_rt_library *library,
                              const void *options, Step **outStep,
                              std::unique_ptr<Step> &step) {
  if (!library)
    return fail(ZERO_RT_INVALID_ARGUMENT, "library is null");
  if (!outStep)
    return fail(ZERO_RT_INVALID_ARGUMENT, "out_step is null");
  if (options)
    return fail(ZERO_RT_INVALID_ARGUMENT, "options are reserved, pass null");
  ZERO_RT_TRY(checkCompatible(runtime, *library));
  ZERO_RT_TRY(checkStages(*library));
  auto known = std::make_unique<KnownLibrary>();
  ZERO_RT_TRY(known->read(*library));
  const zero_rt_library &whole = known->get();
  if (whole.num_stages == 0)
    ZERO_RT_TRY(checkLibrary(whole, /*isStage=*/false));
  for (int64_t s = 0; s < whole.num_stages; ++s)
    ZERO_RT_TRY(checkLibrary(*whole.stages[s], /*isStage=*/true));
  step = std::make_unique<Step>(runtime, std::move(known));
  ZERO_RT_TRY(allocateAll(*step));
  ZERO_RT_TRY(runtime.device->load(*step->library,
                                   static_cast<double *>(step->slotBlock.data),
                                   &step->program));
  step->entries = enumerateState(*step);
  return ZERO_RT_OK;
}

/// Joins the process groups of |step|, each once.
static zero_rt_status joinGroups(Step &step) {
  ZERO_RT_TRY(step.runtime->communicator->joinStep(step.id));
  for (RankGroup &group : step.groups) {
    if (group.size() == step.runtime->ranks || group.members.empty())
      continue;
    for (const RankGroup &other : step.groups)
      if (other.end && other.members == group.members)
        group.end = other.end;
    if (group.end)
      continue;
    std::unique_ptr<Communicator> end;
    ZERO_RT_TRY(step.runtime->communicator->split(step.id, group.members, end));
    group.end = std::move(end);
  }
  return step.lanes.open();
}

/// The result of |reports| for this rank. A failure of the rank itself comes
/// first.
static zero_rt_status judge(const std::vector<CreateReport> &reports,
                            int32_t rank) {
  const CreateReport &mine = reports[size_t(rank)];
  if (mine.status)
    return fail(mine.status, "%s", mine.message);
  for (size_t r = 0; r < reports.size(); ++r)
    if (reports[r].status)
      return fail(reports[r].status, "rank %zu could not create its step: %s",
                  r, reports[r].message);
  const CreateReport &first = reports[0];
  for (size_t r = 1; r < reports.size(); ++r)
    if (reports[r].planHash != first.planHash)
      return fail(ZERO_RT_MISMATCH,
                  "rank %zu has plan %016llx of '%s', rank 0 has plan %016llx "
                  "of '%s'; load the same library on all ranks",
                  r, (unsigned long long)reports[r].planHash, reports[r].name,
                  (unsigned long long)first.planHash, first.name);
  for (size_t r = 1; r < reports.size(); ++r)
    if (reports[r].contentHash != first.contentHash)
      return fail(ZERO_RT_MISMATCH,
                  "rank %zu has a library '%s' of content %016llx, rank 0 of "
                  "content %016llx; load the same file on all ranks",
                  r, reports[r].name,
                  (unsigned long long)reports[r].contentHash,
                  (unsigned long long)first.contentHash);
  for (size_t r = 1; r < reports.size(); ++r)
    if (reports[r].isImmediate != first.isImmediate)
      return fail(ZERO_RT_MISMATCH,
                  "rank %zu is on device '%s', rank 0 on '%s'; the ranks of a "
                  "step need devices of one kind",
                  r, reports[r].device, first.device);
  return ZERO_RT_OK;
}

/// Sets |hasAgreed| once all ranks know the same about the step.
static zero_rt_status create(Runtime *runtime, const zero_rt_library *library,
                             const void *options, Step **out_step,
                             bool &hasAgreed) {
  std::vector<CreateReport> reports(size_t(runtime->ranks));
  std::unique_ptr<::zero_rt_step> handle;
  std::unique_ptr<Step> step;
  CreateReport mine;
  mine.status = guarded("step_create", [&] {
    handle = std::make_unique<::zero_rt_step>(runtime->handle);
    // Waits for the work of other steps, for which an allocation of the driver
    // may wait.
    ZERO_RT_TRY(runtime->device->finish());
    ZERO_RT_TRY(prepare(*runtime, library, options, out_step, step));
    // The step's memory is there, and has its first values. A step may begin on
    // another stream than the one on which that happens.
    return runtime->device->finish();
  });
  if (mine.status)
    std::snprintf(mine.message, sizeof(mine.message), "%s", lastMessage());
  // Without a step, the library may be of another version, with another layout.
  if (step) {
    std::snprintf(mine.name, sizeof(mine.name), "%s", library->name);
    mine.planHash = library->plan_hash;
    mine.contentHash = contentHashOf(library);
  }

  std::snprintf(mine.device, sizeof(mine.device), "%s",
                runtime->device->name());
  mine.isImmediate = runtime->device->isImmediate();
  Communicator &communicator = *runtime->communicator;
  Tag tag = {"step_create", nullptr, 0, ZERO_RT_F64, ZERO_RT_F64, 0};
  ZERO_RT_TRY(communicator.exchange(tag, &mine, reports.data(),
                                    int64_t(sizeof(CreateReport))));
  hasAgreed = true;
  for (CreateReport &report : reports) {
    report.device[sizeof(report.device) - 1] = 0;
    report.name[sizeof(report.name) - 1] = 0;
    report.message[sizeof(report.message) - 1] = 0;
  }
  ZERO_RT_TRY(judge(reports, runtime->rank));
  step->id = communicator.position();
  ZERO_RT_TRY(guarded("step_create", [&] { return joinGroups(*step); }));
  if (runtime->isTraced())
    handle->calls = &tracedCallTable;
  step->handle = giveOut(std::move(handle), step.get());
  *out_step = step.release();
  return ZERO_RT_OK;
}

zero_rt_status calls::step_create(Runtime *runtime,
                                  const zero_rt_library *library,
                                  const void *options, Step **out_step) {
  if (out_step)
    *out_step = nullptr;
  bool hasAgreed = false;
  zero_rt_status status = guarded("step_create", [&] {
    return create(runtime, library, options, out_step, hasAgreed);
  });
  // The other ranks wait for a rank that was out of memory before that.
  if (status && !hasAgreed)
    runtime->communicator->giveUp(status, lastMessage());
  return status;
}

zero_rt_status calls::step_destroy(Step *step) {
  std::unique_ptr<Step> owned(step);
  step->runtime->communicator->leaveStep(step->id);
  step->runtime->messenger->declareEnd(step->id);
  step->lanes.leave();
  step->runtime->messenger->leaveStep(step->id);
  return ZERO_RT_OK;
}
