//===- CompiledState.cpp - What the ranks of compiled code hold -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/CompiledEngine.h"

#include "codegen/host/AbiNumbers.h"
#include "tools/zero-run/Floats.h"
#include "zero_rt/step.h"

using namespace mlir;
using namespace zero;

bool CompiledEngine::openToRead(int32_t unit) {
  auto isOpen = [&](const Rank &rank) {
    return rank.readUnit == unit || (unit >= 0 && !rank.units.has(unit));
  };
  if (!processes && llvm::all_of(ranks, isOpen))
    return true;
  return onEveryRank([&](int64_t, Rank &rank) {
    if (isOpen(rank))
      return true;
    int32_t last = std::exchange(rank.readUnit, -1);
    if (last >= 0 &&
        !check(rank, zero_rt_step_reshard(rank.step, last, nullptr)))
      return false;
    std::optional<zero_rt_counters> before = readCounters(rank);
    if (!before)
      return false;
    for (int32_t one : rank.units.getWay(last, unit))
      if (!check(rank, zero_rt_step_unshard(rank.step, one, nullptr)) ||
          (one != unit &&
           !check(rank, zero_rt_step_reshard(rank.step, one, nullptr))))
        return false;
    std::optional<zero_rt_counters> after = readCounters(rank);
    if (!after)
      return false;
    rank.gathersToRead += after->all_gathers - before->all_gathers;
    rank.sentToRead += after->bytes_sent - before->bytes_sent;
    rank.copiedToRead += after->bytes_copied_between_spaces -
                         before->bytes_copied_between_spaces;
    rank.readUnit = unit;
    return true;
  });
}

bool CompiledEngine::readParameter(Rank &rank, int32_t id, Type type,
                                   std::vector<Number> &read) {
  zero_rt_tensor view = {};
  view.struct_size = sizeof(view);
  if (!check(rank, zero_rt_step_parameter(rank.step, id, &view)))
    return false;
  Bytes bytes(view.elements * getWidth(type));
  if (!check(rank,
             zero_rt_copy(rank.runtime, bytes.data(), view.data, bytes.size())))
    return false;
  read = unpack(bytes.data(), view.elements, type);
  return true;
}

FailureOr<std::vector<Number>>
CompiledEngine::getParameter(int64_t r, const ParameterInfo &parameter) {
  Rank &rank = ranks[r];
  // The parameter, and its unit; -1: it is not found.
  std::vector<int32_t> ids{-1, -1};
  if (isHere(r) && check(rank, zero_rt_step_find_parameter(
                                   rank.step, parameter.name.c_str(), &ids[0])))
    ids[1] = rank.units.of(ids[0]);
  share(r, ids);
  if (ids[0] < 0 || !openToRead(ids[1]))
    return failure();
  std::vector<Number> read;
  std::vector<char> isRead{0};
  if (isHere(r))
    isRead[0] = readParameter(rank, ids[0], parameter.storageType, read);
  share(r, isRead);
  share(r, read);
  if (!isRead[0])
    return failure();
  if (!traveling.contains(parameter.name) || !parameter.gatherType ||
      parameter.gatherType == parameter.storageType)
    return read;
  // The caller reads rounded numbers; slices are compared with the reference.
  auto whole = getState("parameter", parameter);
  if (failed(whole))
    return failure();
  std::string wrong = checkTravel(parameter, r, read, *whole);
  if (wrong.empty())
    return read;
  return emitError(UnknownLoc::get(context)) << wrong;
}

LogicalResult CompiledEngine::checkAllFrozen() {
  for (const ParameterInfo &info : frozen) {
    for (size_t r = 0; r < ranks.size(); ++r) {
      if (!info.holders[r])
        continue;
      auto read = getParameter(r, info);
      if (failed(read))
        return emitError(UnknownLoc::get(context)) << joinMessages();
      if (std::string wrong = checkFrozen(info, r, *read); !wrong.empty())
        return emitError(UnknownLoc::get(context)) << wrong;
    }
  }
  return success();
}

bool CompiledEngine::readState(int64_t r, StringRef role,
                               const ParameterInfo &parameter,
                               std::vector<Held> &held) {
  Rank &rank = ranks[r];
  int64_t count = 0;
  int32_t id = -1;
  if (!check(rank, zero_rt_step_find_parameter(rank.step,
                                               parameter.name.c_str(), &id)) ||
      !check(rank, zero_rt_step_state_count(rank.step, &count)))
    return false;
  for (int64_t i = 0; i < count; ++i) {
    zero_rt_state_entry entry = {};
    entry.struct_size = sizeof(entry);
    if (!check(rank, zero_rt_step_state_describe(rank.step, i, &entry)))
      return false;
    if (entry.parameter != id || role != entry.role)
      continue;
    Type type = getType(entry.dtype, parameter.storageType.getContext());
    Bytes bytes((entry.end - entry.begin) * getWidth(type));
    if (!check(rank, zero_rt_step_state_read(rank.step, i, bytes.data(),
                                             bytes.size())))
      return false;
    std::vector<Number> part =
        unpack(bytes.data(), entry.end - entry.begin, type);
    for (auto [e, number] : llvm::enumerate(part)) {
      int64_t position = entry.begin + e;
      held.push_back(
          {parameter.held.empty() ? position : parameter.held[r][position],
           number});
    }
  }
  return true;
}

FailureOr<std::vector<Number>>
CompiledEngine::getState(StringRef role, const ParameterInfo &parameter) {
  std::vector<Number> whole;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (!parameter.holders[r])
      continue;
    std::vector<Held> held;
    std::vector<char> isRead{0};
    if (isHere(r))
      isRead[0] = readState(r, role, parameter, held);
    share(r, isRead);
    if (!isRead[0])
      return failure();
    share(r, held);
    if (!held.empty())
      whole.resize(parameter.elements);
    for (const Held &one : held)
      whole[one.position] = one.number;
  }
  return whole;
}

std::optional<zero_rt_counters> CompiledEngine::readCounters(Rank &rank) {
  zero_rt_counters counters = {};
  counters.struct_size = sizeof(counters);
  if (!check(rank, zero_rt_read_counters(rank.runtime, &counters)))
    return std::nullopt;
  counters.bytes_copied_between_spaces -= rank.copiedByBinding;
  counters.all_gathers -= rank.gathersToRead;
  counters.bytes_sent -= rank.sentToRead;
  counters.bytes_copied_between_spaces -= rank.copiedToRead;
  return counters;
}

std::optional<zero_rt_counters> CompiledEngine::getCounters(int64_t r) {
  std::vector<zero_rt_counters> counters;
  if (isHere(r))
    if (std::optional<zero_rt_counters> own = readCounters(ranks[r]))
      counters.push_back(*own);
  share(r, counters);
  if (counters.empty())
    return std::nullopt;
  return counters[0];
}

//===----------------------------------------------------------------------===//
// Checkpoints
//===----------------------------------------------------------------------===//

LogicalResult CompiledEngine::save(StringRef folder, int64_t number) {
  std::string path = folder.str();
  if (openToRead(-1) && onEveryRank([&](int64_t, Rank &rank) {
        return check(rank, zero_rt_step_save(rank.step, path.c_str(), number));
      }))
    return success();
  return emitError(UnknownLoc::get(context)) << joinMessages();
}

LogicalResult CompiledEngine::saveWithin(ArrayRef<RankInputs> inputs,
                                         StringRef folder, int64_t number) {
  std::string path = folder.str();
  if (openToRead(-1) && onEveryRank([&](int64_t r, Rank &rank) {
        RankInputs closed = inputs[r];
        closed.closesLast = true;
        std::vector<Arrival> order;
        return deliver(rank, closed, order) &&
               check(rank,
                     zero_rt_step_save(rank.step, path.c_str(), number)) &&
               check(rank, zero_rt_step_discard(rank.step));
      }))
    return success();
  return emitError(UnknownLoc::get(context)) << joinMessages();
}

FailureOr<LoadedAt> CompiledEngine::load(StringRef folder) {
  std::string path = folder.str();
  std::vector<LoadedAt> loaded(ranks.size());
  if (!openToRead(-1) || !onEveryRank([&](int64_t r, Rank &rank) {
        return check(rank, zero_rt_step_load(rank.step, path.c_str(),
                                             &loaded[r].number)) &&
               check(rank, zero_rt_step_backward_passes(rank.step,
                                                        &loaded[r].backwards));
      }))
    return emitError(UnknownLoc::get(context)) << joinMessages();
  loadedBackwards = loaded[getFirstHere()].backwards;
  return loaded[getFirstHere()];
}
