//===- ProgramCalls.cpp - Runs a zrt.program: its calls -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each function is what zero_rt/calls.def says of the call of that name.
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/ProgramInterpreter.h"
#include "dialect/zero/Outcome.h"
#include "dialect/zrt/EachCall.h"

#include <limits>

using namespace mlir;
using namespace zero;

LogicalResult ProgramInterpreter::requireAllocated(Operation *call,
                                                   FlatSymbolRefAttr buffer,
                                                   ArrayRef<int64_t> ranks) {
  for (int64_t rank : ranks)
    if (!program.getBuffer(buffer).allocated[rank])
      return call->emitOpError() << "uses buffer " << buffer
                                 << ", which is not allocated on rank " << rank;
  return success();
}

//===----------------------------------------------------------------------===//
// Arrivals
//===----------------------------------------------------------------------===//

template <>
LogicalResult ProgramInterpreter::runOp(zrt::PackOp op, const Turn &turn) {
  int64_t rank = turn.rank();
  const Parameter *arriving = turn.arriving;
  RankState &state = states[rank];
  if (!arriving)
    return op.emitOpError() << "runs in an event that brings no gradient";
  ParameterOp parameter = arriving->op;
  zrt::BucketTableOp arrivals = arriving->table;
  if (failed(requireAllocated(op, arrivals.getGradientAttr(), rank)))
    return failure();
  // A second use within one backward pass adds to the first.
  int64_t piece = state.arrived.lookup(parameter.getSymName());
  bool adds = op.getAccumulate() || piece > 0;
  Kernel &kernel =
      program.getKernel(adds ? arrivals.getAddAttr() : arrivals.getStoreAttr());
  int64_t begin =
      program.getBuffer(arrivals.getGradientAttr()).held[rank].begin;
  Array &elements = program.write(arrivals.getGradientAttr())[rank];
  program.readArrivingGradient();
  BucketOp bucket = arriving->bucket;
  const Format &arrival = *getFormat(bucket.getArrivalType());
  const std::vector<double> &values =
      *window->find(rank, state.backward, parameter.getSymName());
  // Each element is in one piece, and 0 in the others, so sums are exact.
  int64_t pieces = getNumPieces(state.backward, *arriving);
  for (auto [i, value] : llvm::enumerate(values)) {
    Number &kept = elements[arriving->range.begin + i - begin];
    bool isInPiece = static_cast<int64_t>(i) % pieces == piece;
    Number arguments[] = {calculator.read(arrival, isInPiece ? value : 0.0),
                          kept};
    kernel.body->run(calculator,
                     ArrayRef(arguments, kernel.body->getNumArguments()), kept);
  }
  if (!adds)
    for (int64_t e = arriving->range.end; e < arriving->padEnd; ++e)
      elements[e - begin] = {};
  return success();
}

template <>
LogicalResult ProgramInterpreter::runOp(zrt::FillMissingOp op,
                                        const Turn &turn) {
  int64_t rank = turn.rank();
  for (const Parameter &parameter : parameters) {
    BucketOp bucket = parameter.bucket;
    ParameterOp parameterOp = parameter.op;
    zrt::BucketTableOp arrivals = parameter.table;
    if (bucket.getSymName() != op.getBucket() ||
        states[rank].arrived.contains(parameterOp.getSymName()))
      continue;
    int64_t begin =
        program.getBuffer(arrivals.getGradientAttr()).held[rank].begin;
    Array &elements = program.write(arrivals.getGradientAttr())[rank];
    for (int64_t e = parameter.range.begin; e < parameter.padEnd; ++e)
      elements[e - begin] = {};
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

template <>
LogicalResult ProgramInterpreter::runOp(zrt::LaunchOp op, const Turn &turn) {
  int64_t rank = turn.rank();
  Kernel &kernel = program.getKernel(op.getKernelAttr());
  unsigned numArrays = kernel.op.getNumArrays();
  int64_t numScalars = kernel.op.getNumScalars();
  struct Operand {
    int64_t begin;
    const Array *in;
    Array *out;
  };
  std::vector<Operand> operands;
  bool isOnHost = false;
  for (auto [i, symbol] :
       llvm::enumerate(op.getBuffers().getAsRange<FlatSymbolRefAttr>())) {
    if (failed(requireAllocated(op, symbol, rank)))
      return failure();
    const Buffer &buffer = program.getBuffer(symbol);
    zrt::Access access = kernel.op.getArrayAccess(i);
    Operand &operand = operands.emplace_back(
        Operand{buffer.held[rank].begin, nullptr, nullptr});
    if (access != zrt::Access::write)
      operand.in = &program.read(symbol)[rank];
    if (access != zrt::Access::read)
      operand.out = &program.write(symbol)[rank];
    zrt::BufferOp bufferOp = buffer.op;
    isOnHost = bufferOp.getSpace() == zrt::Space::host;
  }
  zrt::SegmentsOp segments = program.getSegments(op.getSegmentsAttr());
  int64_t elements = segments.getEnds().empty() ? 0 : segments.getEnds().back();
  Range domain{0, elements};
  if (op.getOwn())
    domain = ranks.getSlices(
        elements,
        SmallVector<StringAttr>(op.getOwn()->getAsRange<StringAttr>()))[rank];
  std::vector<Number> terms; // of a kernel that sums
  std::vector<Number> arguments;
  std::vector<Number> results(kernel.body->getNumResults());
  int64_t begin = 0;
  for (auto [i, end] : llvm::enumerate(segments.getEnds())) {
    Range part = {std::max(begin, domain.begin), std::min(end, domain.end)};
    begin = end;
    ArrayRef<Number> scalars;
    if (numScalars > 0) {
      auto symbol =
          cast<FlatSymbolRefAttr>(segments.getScalars()[segments.getRows()[i]]);
      auto visible = program.readScalars(symbol, rank, isOnHost);
      if (!visible)
        return op.emitOpError() << "reads scalars on the host of rank " << rank
                                << ", which no zrt.copy_scalars copied there";
      scalars = visible->take_front(numScalars);
    }
    if (kernel.op.getPredicated() && scalars[0].value != 0)
      continue;
    for (int64_t e = part.begin; e < part.end; ++e) {
      arguments.clear();
      for (unsigned a = 0; a < numArrays; ++a)
        if (operands[a].in)
          arguments.push_back((*operands[a].in)[e - operands[a].begin]);
      llvm::append_range(arguments, scalars);
      kernel.body->run(calculator, arguments, results);
      auto result = results.begin();
      for (unsigned a = 0; a < numArrays; ++a)
        if (operands[a].out)
          (*operands[a].out)[e - operands[a].begin] = *result++;
      if (kernel.op.getSums())
        terms.push_back(*result);
    }
  }
  if (op.getSumAttr())
    program.writeSlots(op.getSumAttr(), rank)[op.getSumIndex()] =
        sumInLanes(calculator, terms);
  return success();
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

Array ProgramInterpreter::sumOverGroup(FlatSymbolRefAttr buffer,
                                       const Format &format,
                                       ArrayRef<int64_t> group) {
  SmallVector<const Array *> addends;
  const PerRank &contents = program.read(buffer);
  for (int64_t rank : group)
    addends.push_back(&contents[rank]);
  return sumInOrder(calculator, format, addends);
}

LogicalResult ProgramInterpreter::reduceScatter(Operation *call,
                                                const zrt::Exchange &exchange,
                                                ArrayRef<int64_t> group) {
  if (failed(requireAllocated(call, exchange.source, group)) ||
      failed(requireAllocated(call, exchange.target, group)))
    return failure();
  const Buffer &buffer = program.getBuffer(exchange.target);
  Array sum = sumOverGroup(exchange.source, *buffer.format, group);
  for (int64_t rank : group) {
    Array slice = sum.slice(buffer.held[rank]);
    Array &kept = program.write(exchange.target)[rank];
    kept = exchange.accumulates ? ::add(calculator, kept, slice) : slice;
  }
  return success();
}

template <>
LogicalResult ProgramInterpreter::runOp(zrt::ReduceScatterOp op,
                                        const Turn &turn) {
  return reduceScatter(op, op.getExchange(), turn.ranks);
}

template <>
LogicalResult ProgramInterpreter::runOp(zrt::ReduceScatterAddOp op,
                                        const Turn &turn) {
  return reduceScatter(op, op.getExchange(), turn.ranks);
}

template <>
LogicalResult ProgramInterpreter::runOp(zrt::AllReduceOp op, const Turn &turn) {
  if (failed(requireAllocated(op, op.getBufferAttr(), turn.ranks)) ||
      failed(requireAllocated(op, op.getResultBuffer(), turn.ranks)))
    return failure();
  const Buffer &target = program.getBuffer(op.getResultBuffer());
  Array sum = sumOverGroup(op.getBufferAttr(), *target.format, turn.ranks);
  for (int64_t rank : turn.ranks)
    program.write(op.getResultBuffer())[rank] = sum;
  return success();
}

template <>
LogicalResult ProgramInterpreter::runOp(zrt::AllGatherOp op, const Turn &turn) {
  if (failed(requireAllocated(op, op.getBufferAttr(), turn.ranks)))
    return failure();
  const Buffer &buffer = program.getBuffer(op.getBufferAttr());
  PerRank &contents = program.write(op.getBufferAttr());
  Array whole(*buffer.format, 0);
  for (auto [i, rank] : llvm::enumerate(turn.ranks)) {
    const Array &array = contents[rank];
    Array slice = array.slice(getSlice(array.size(), i, turn.ranks.size()));
    llvm::append_range(whole.elements, slice.elements);
  }
  for (int64_t rank : turn.ranks)
    contents[rank] = whole;
  return success();
}

template <>
LogicalResult ProgramInterpreter::runOp(zrt::AllReduceScalarsOp op,
                                        const Turn &turn) {
  std::vector<Number> sums =
      program.readSlots(op.getSlotsAttr(), turn.rank()).vec();
  for (int64_t rank : turn.ranks.drop_front())
    for (auto [sum, addend] :
         llvm::zip_equal(sums, program.readSlots(op.getSlotsAttr(), rank)))
      sum = calculator.add(kF64, sum, addend);
  for (int64_t rank : turn.ranks)
    llvm::copy(sums, program.writeSlots(op.getSlotsAttr(), rank).begin());
  return success();
}

std::vector<int64_t> ProgramInterpreter::getGroupOf(Operation *call,
                                                    int64_t rank) {
  if (!isOn(call, rank))
    return {};
  if (auto collective = dyn_cast<zrt::Collective>(call))
    for (auto &group : getGroups(call, collective.getAxes()))
      if (llvm::is_contained(group, rank))
        return group;
  return {rank};
}

//===----------------------------------------------------------------------===//
// Everything else
//===----------------------------------------------------------------------===//

template <>
LogicalResult ProgramInterpreter::runOp(zrt::CopyOp op, const Turn &turn) {
  int64_t rank = turn.rank();
  if (failed(requireAllocated(op, op.getSourceAttr(), rank)) ||
      failed(requireAllocated(op, op.getTargetAttr(), rank)))
    return failure();
  const Array &source = program.read(op.getSourceAttr())[rank];
  Array &target = program.write(op.getTargetAttr())[rank];
  Range from = program.getBuffer(op.getSourceAttr()).held[rank];
  Range to = program.getBuffer(op.getTargetAttr()).held[rank];
  for (int64_t e = std::max(from.begin, to.begin);
       e < std::min(from.end, to.end); ++e)
    target[e - to.begin] = source[e - from.begin];
  return success();
}

template <>
LogicalResult ProgramInterpreter::runOp(zrt::KeepOnRootOp op,
                                        const Turn &turn) {
  int64_t rank = turn.rank();
  if (failed(requireAllocated(op, op.getBufferAttr(), rank)))
    return failure();
  if (!isFirstOver(rank, op.getAxes()))
    program.allocate(op.getBufferAttr(), rank, 0.0);
  return success();
}

/// Whether |rank| is the first of its group over |axes|.
bool ProgramInterpreter::isFirstOver(int64_t rank, ArrayAttr axes) {
  return llvm::all_of(axes.getAsRange<StringAttr>(), [&](StringAttr axis) {
    return ranks.getCoordinate(rank, axis) == 0;
  });
}

template <>
LogicalResult ProgramInterpreter::runOp(zrt::AllocateOp op, const Turn &turn) {
  int64_t rank = turn.rank();
  if (program.getBuffer(op.getBufferAttr()).allocated[rank])
    return op.emitOpError() << "buffer is allocated already on rank " << rank;
  if (FlatSymbolRefAttr other =
          program.findSharerInUse(op.getBufferAttr(), rank))
    return op.emitOpError()
           << "takes memory that " << other << " uses on rank " << rank;
  program.allocate(op.getBufferAttr(), rank,
                   std::numeric_limits<double>::quiet_NaN());
  return success();
}

template <>
LogicalResult ProgramInterpreter::runOp(zrt::ReleaseOp op, const Turn &turn) {
  if (failed(requireAllocated(op, op.getBufferAttr(), turn.ranks)))
    return failure();
  program.release(op.getBufferAttr(), turn.rank());
  return success();
}

template <>
LogicalResult ProgramInterpreter::runOp(zrt::SetRoleOp, const Turn &) {
  return success(); // moves no byte
}

// Calls run in program order, which the schedule allows.
template <>
LogicalResult ProgramInterpreter::runOp(zrt::RecordOp, const Turn &) {
  return success();
}
template <> LogicalResult ProgramInterpreter::runOp(zrt::WaitOp, const Turn &) {
  return success();
}
template <>
LogicalResult ProgramInterpreter::runOp(zrt::WaitWritableOp, const Turn &) {
  return success();
}

template <>
LogicalResult ProgramInterpreter::runOp(zrt::CopyScalarsOp, const Turn &turn) {
  program.copySlotsToHost(turn.rank());
  return success();
}

template <>
LogicalResult ProgramInterpreter::runOp(zrt::RunScalarsOp op,
                                        const Turn &turn) {
  program.runScalars(calculator, op.getProgramAttr(), turn.rank());
  return success();
}

template <>
LogicalResult ProgramInterpreter::runOp(zrt::CountArrivalsOp op,
                                        const Turn &turn) {
  int64_t rank = turn.rank();
  auto counts = program.writeSlots(op.getSlotsAttr(), rank);
  counts[0] = {static_cast<double>(window->getBackwards(rank)), 0};
  counts[1] = {
      static_cast<double>(states[rank].missing + window->getDifference(rank)),
      0};
  return success();
}

template <>
LogicalResult ProgramInterpreter::runOp(zrt::CountDeliveredOp op,
                                        const Turn &turn) {
  int64_t rank = turn.rank();
  int64_t delivered = states[rank].delivered.lookup(op.getParameter());
  program.writeSlots(op.getSlotsAttr(),
                     rank)[op.getIndex()] = {static_cast<double>(delivered), 0};
  return success();
}

template <>
LogicalResult ProgramInterpreter::runOp(zrt::CountReplicatedOnceOp op,
                                        const Turn &turn) {
  if (!isFirstOver(turn.rank(), op.getAxes()))
    program.writeSlots(op.getSlotsAttr(), turn.rank())[op.getIndex()] = {};
  return success();
}

template <>
LogicalResult ProgramInterpreter::runOp(zrt::CommitOp op, const Turn &turn) {
  RankState &state = states[turn.rank()];
  if (state.committed)
    return op.emitOpError()
           << "commits a step a second time on rank " << turn.rank();
  double outcome = program.readSlots(op.getOutcomeAttr(), turn.rank())[0].value;
  std::optional<Outcome> committed = toOutcome(outcome);
  if (!committed)
    return op.emitOpError() << "got " << outcome << ", which is no outcome";
  state.outcome = *committed;
  state.committed = true;
  state.results.clear();
  for (auto symbol :
       program.getOp().getResults().getAsRange<FlatSymbolRefAttr>())
    state.results.push_back(program.readSlots(symbol, turn.rank())[0]);
  return success();
}

LogicalResult ProgramInterpreter::runUnchecked(zrt::RuntimeCall call,
                                               const Turn &turn) {
  LogicalResult result = success();
  zrt::visitCall(call, [&](auto op) { result = runOp(op, turn); });
  program.destroySharers(turn.ranks);
  return result;
}

LogicalResult ProgramInterpreter::runCollective(Operation *call,
                                                ArrayRef<int64_t> group) {
  program.takeTouches();
  return failure(failed(runUnchecked(cast<zrt::RuntimeCall>(call), {group})) ||
                 failed(checkTouches(call)));
}

LogicalResult ProgramInterpreter::checkTouches(Operation *call,
                                               const Parameter *arriving) {
  zrt::BucketTableOp table = arriving ? arriving->table : zrt::BucketTableOp();
  SmallVector<zrt::MemoryUse> uses = program.getSymbols().getUses(
      cast<zrt::RuntimeCall>(call), table ? table.getBucketAttr() : nullptr);
  for (const Touch &touch : program.takeTouches())
    if (llvm::none_of(uses, [&](const zrt::MemoryUse &use) {
          return use.memory == touch.memory && (use.writes || !touch.writes);
        }))
      return call->emitOpError() << (touch.writes ? "writes" : "reads") << " @"
                                 << touch.memory.getValue()
                                 << ", which its getMemoryUses does not list";
  return success();
}

LogicalResult ProgramInterpreter::run(const Action &action, int64_t rank) {
  if (!isOn(action.call, rank))
    return success();
  program.takeTouches();
  return failure(failed(runUnchecked(cast<zrt::RuntimeCall>(action.call),
                                     {ArrayRef(rank), action.parameter})) ||
                 failed(checkTouches(action.call, action.parameter)));
}
