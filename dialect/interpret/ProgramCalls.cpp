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

#include <limits>

using namespace mlir;
using namespace zero;

LogicalResult ProgramInterpreter::requireAllocated(Operation *call,
                                                   FlatSymbolRefAttr buffer,
                                                   int64_t rank) {
  if (program.getBuffer(buffer).allocated[rank])
    return success();
  return call->emitOpError() << "uses buffer " << buffer
                             << ", which is not allocated on rank " << rank;
}

//===----------------------------------------------------------------------===//
// Arrivals
//===----------------------------------------------------------------------===//

LogicalResult ProgramInterpreter::pack(zrt::PackOp op, int64_t rank) {
  RankState &state = states[rank];
  const Parameter *arriving = state.arriving;
  if (!arriving)
    return op.emitOpError() << "runs in an event that brings no gradient";
  ParameterOp parameter = arriving->op;
  zrt::BucketTableOp arrivals = arriving->arrivals;
  if (failed(requireAllocated(op, arrivals.getGradientAttr(), rank)))
    return failure();
  // A second use within one backward pass adds to the first.
  bool adds =
      op.getAccumulate() || state.arrived.lookup(parameter.getSymName()) > 0;
  Kernel &kernel =
      program.getKernel(adds ? arrivals.getAddAttr() : arrivals.getStoreAttr());
  Buffer &buffer = program.getBuffer(arrivals.getGradientAttr());
  BucketOp bucket = arriving->bucket;
  const Format &arrival = *getFormat(bucket.getArrivalType());
  const std::vector<double> &values =
      *window->find(rank, state.backward, parameter.getSymName());
  for (auto [i, value] : llvm::enumerate(values)) {
    Number &kept = buffer.at(rank, arriving->range.begin + i);
    Number arguments[] = {calculator.read(arrival, value), kept};
    kernel.body->run(calculator,
                     ArrayRef(arguments, kernel.body->getNumArguments()), kept);
  }
  if (!adds)
    for (int64_t e = arriving->range.end; e < arriving->padEnd; ++e)
      buffer.at(rank, e) = {};
  return success();
}

void ProgramInterpreter::fillMissing(zrt::FillMissingOp op, int64_t rank) {
  for (const Parameter &parameter : parameters) {
    BucketOp bucket = parameter.bucket;
    ParameterOp parameterOp = parameter.op;
    zrt::BucketTableOp arrivals = parameter.arrivals;
    if (bucket.getSymName() != op.getBucket() ||
        states[rank].arrived.contains(parameterOp.getSymName()))
      continue;
    Buffer &buffer = program.getBuffer(arrivals.getGradientAttr());
    for (int64_t e = parameter.range.begin; e < parameter.padEnd; ++e)
      buffer.at(rank, e) = {};
  }
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

LogicalResult ProgramInterpreter::launch(zrt::LaunchOp op, int64_t rank) {
  Kernel &kernel = program.getKernel(op.getKernelAttr());
  unsigned numArrays = kernel.op.getNumArrays();
  int64_t numScalars = kernel.op.getNumScalars();
  std::vector<Buffer *> operands;
  for (auto symbol : op.getBuffers().getAsRange<FlatSymbolRefAttr>()) {
    if (failed(requireAllocated(op, symbol, rank)))
      return failure();
    operands.push_back(&program.getBuffer(symbol));
  }
  zrt::SegmentsOp segments = program.getSegments(op.getSegmentsAttr());
  int64_t elements = segments.getEnds().empty() ? 0 : segments.getEnds().back();
  Range domain{0, elements};
  if (op.getOwn())
    domain = ranks.getSlices(
        elements,
        SmallVector<StringAttr>(op.getOwn()->getAsRange<StringAttr>()))[rank];
  std::vector<Number> &slots = program.getSlots(rank);
  // Kernels on the host have a copy of the scalars.
  bool isOnHost =
      !operands.empty() && operands.front()->op.getSpace() == zrt::Space::host;
  std::vector<Number> &visible = isOnHost ? states[rank].hostSlots : slots;
  if (numScalars > 0 && visible.empty())
    return op.emitOpError() << "reads scalars on the host of rank " << rank
                            << ", which no zrt.copy_scalars copied there";

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
      scalars =
          ArrayRef(visible).slice(program.getFirstSlot(symbol), numScalars);
    }
    if (kernel.op.getPredicated() && scalars[0].value != 0)
      continue;
    for (int64_t e = part.begin; e < part.end; ++e) {
      arguments.clear();
      for (unsigned a = 0; a < numArrays; ++a)
        if (kernel.op.getArrayAccess(a) != zrt::Access::write)
          arguments.push_back(operands[a]->at(rank, e));
      llvm::append_range(arguments, scalars);
      kernel.body->run(calculator, arguments, results);
      auto result = results.begin();
      for (unsigned a = 0; a < numArrays; ++a)
        if (kernel.op.getArrayAccess(a) != zrt::Access::read)
          operands[a]->at(rank, e) = *result++;
      if (kernel.op.getSums())
        terms.push_back(*result);
    }
  }
  if (op.getSumAttr())
    slots[program.getFirstSlot(op.getSumAttr()) + op.getSumIndex()] =
        sumInLanes(calculator, terms);
  return success();
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

Array ProgramInterpreter::sumOverGroup(Buffer &buffer, const Format &format,
                                       ArrayRef<int64_t> group) {
  SmallVector<const Array *> addends;
  for (int64_t rank : group)
    addends.push_back(&buffer.contents[rank]);
  return sumInOrder(calculator, format, addends);
}

LogicalResult ProgramInterpreter::reduceScatter(Operation *call,
                                                FlatSymbolRefAttr source,
                                                FlatSymbolRefAttr target,
                                                ArrayAttr axes,
                                                bool accumulate) {
  for (int64_t rank = 0; rank < ranks.size(); ++rank)
    if (isOn(call, rank) && (failed(requireAllocated(call, source, rank)) ||
                             failed(requireAllocated(call, target, rank))))
      return failure();
  Buffer &buffer = program.getBuffer(target);
  for (const auto &group : getGroups(call, axes)) {
    Array sum = sumOverGroup(program.getBuffer(source), *buffer.format, group);
    for (int64_t rank : group) {
      Array slice = sum.slice(buffer.held[rank]);
      Array &kept = buffer.contents[rank];
      kept = accumulate ? add(calculator, kept, slice) : slice;
    }
  }
  return success();
}

LogicalResult ProgramInterpreter::allReduce(zrt::AllReduceOp op) {
  for (int64_t rank = 0; rank < ranks.size(); ++rank)
    if (isOn(op, rank) &&
        (failed(requireAllocated(op, op.getBufferAttr(), rank)) ||
         failed(requireAllocated(op, op.getResultBuffer(), rank))))
      return failure();
  Buffer &target = program.getBuffer(op.getResultBuffer());
  for (const auto &group : getGroups(op, op.getAxes())) {
    Array sum = sumOverGroup(program.getBuffer(op.getBufferAttr()),
                             *target.format, group);
    for (int64_t rank : group)
      target.contents[rank] = sum;
  }
  return success();
}

LogicalResult ProgramInterpreter::allGather(zrt::AllGatherOp op) {
  for (int64_t rank = 0; rank < ranks.size(); ++rank)
    if (isOn(op, rank) &&
        failed(requireAllocated(op, op.getBufferAttr(), rank)))
      return failure();
  Buffer &buffer = program.getBuffer(op.getBufferAttr());
  for (const auto &group : getGroups(op, op.getAxes())) {
    Array whole(*buffer.format, 0);
    for (auto [i, rank] : llvm::enumerate(group)) {
      const Array &array = buffer.contents[rank];
      Array slice = array.slice(getSlice(array.size(), i, group.size()));
      llvm::append_range(whole.elements, slice.elements);
    }
    for (int64_t rank : group)
      buffer.contents[rank] = whole;
  }
  return success();
}

LogicalResult ProgramInterpreter::runCollective(Operation *call) {
  if (auto op = dyn_cast<zrt::ReduceScatterOp>(call))
    return reduceScatter(op, op.getSourceAttr(), op.getTargetAttr(),
                         op.getAxes(), false);
  if (auto op = dyn_cast<zrt::ReduceScatterAddOp>(call))
    return reduceScatter(op, op.getSourceAttr(), op.getTargetAttr(),
                         op.getAxes(), true);
  if (auto op = dyn_cast<zrt::AllReduceScalarsOp>(call)) {
    int64_t first = program.getFirstSlot(op.getSlotsAttr());
    int64_t end = first + program.getNumSlots(op.getSlotsAttr());
    for (const auto &group : getGroups(call, op.getAxes()))
      for (int64_t i = first; i < end; ++i) {
        Number sum = program.getSlots(group.front())[i];
        for (int64_t rank : ArrayRef(group).drop_front())
          sum = calculator.add(kF64, sum, program.getSlots(rank)[i]);
        for (int64_t rank : group)
          program.getSlots(rank)[i] = sum;
      }
    return success();
  }

  if (auto op = dyn_cast<zrt::AllReduceOp>(call))
    return allReduce(op);
  return allGather(cast<zrt::AllGatherOp>(call));
}

//===----------------------------------------------------------------------===//
// Everything else
//===----------------------------------------------------------------------===//

LogicalResult ProgramInterpreter::copy(zrt::CopyOp op, int64_t rank) {
  if (failed(requireAllocated(op, op.getSourceAttr(), rank)) ||
      failed(requireAllocated(op, op.getTargetAttr(), rank)))
    return failure();
  Buffer &source = program.getBuffer(op.getSourceAttr());
  Buffer &target = program.getBuffer(op.getTargetAttr());
  Range from = source.held[rank];
  Range to = target.held[rank];
  for (int64_t e = std::max(from.begin, to.begin);
       e < std::min(from.end, to.end); ++e)
    target.at(rank, e) = source.at(rank, e);
  return success();
}

LogicalResult ProgramInterpreter::keepOnRoot(zrt::KeepOnRootOp op,
                                             int64_t rank) {
  if (failed(requireAllocated(op, op.getBufferAttr(), rank)))
    return failure();
  Buffer &buffer = program.getBuffer(op.getBufferAttr());
  if (!isFirstOver(rank, op.getAxes()))
    buffer.allocate(rank, 0.0);
  return success();
}

/// Whether |rank| is the first of its group over |axes|.
bool ProgramInterpreter::isFirstOver(int64_t rank, ArrayAttr axes) {
  return llvm::all_of(axes.getAsRange<StringAttr>(), [&](StringAttr axis) {
    return ranks.getCoordinate(rank, axis) == 0;
  });
}

LogicalResult ProgramInterpreter::run(Operation *call, int64_t rank) {
  if (!isOn(call, rank))
    return success();
  std::vector<Number> &slots = program.getSlots(rank);
  RankState &state = states[rank];
  if (auto op = dyn_cast<zrt::PackOp>(call))
    return pack(op, rank);
  if (auto op = dyn_cast<zrt::LaunchOp>(call))
    return launch(op, rank);
  if (auto op = dyn_cast<zrt::FillMissingOp>(call)) {
    fillMissing(op, rank);
    return success();
  }
  if (auto op = dyn_cast<zrt::AllocateOp>(call)) {
    Buffer &buffer = program.getBuffer(op.getBufferAttr());
    if (buffer.allocated[rank])
      return op.emitOpError() << "buffer is allocated already on rank " << rank;
    buffer.allocate(rank, std::numeric_limits<double>::quiet_NaN());
    return success();
  }
  if (auto op = dyn_cast<zrt::ReleaseOp>(call)) {
    if (failed(requireAllocated(op, op.getBufferAttr(), rank)))
      return failure();
    Buffer &buffer = program.getBuffer(op.getBufferAttr());
    buffer.contents[rank] = Array();
    buffer.allocated[rank] = false;
    return success();
  }
  if (auto op = dyn_cast<zrt::CopyOp>(call))
    return copy(op, rank);
  if (auto op = dyn_cast<zrt::KeepOnRootOp>(call))
    return keepOnRoot(op, rank);
  if (isa<zrt::SetRoleOp>(call))
    return success(); // moves no byte
  // Calls run in program order, which the schedule allows.
  if (isa<zrt::RecordOp, zrt::WaitOp, zrt::WaitWritableOp>(call))
    return success();
  if (isa<zrt::CopyScalarsOp>(call)) {
    state.hostSlots = slots;
    return success();
  }
  if (auto op = dyn_cast<zrt::RunScalarsOp>(call)) {
    program.getScalars(op.getProgramAttr()).run(calculator, {}, {}, slots);
    return success();
  }
  if (auto op = dyn_cast<zrt::CountArrivalsOp>(call)) {
    int64_t first = program.getFirstSlot(op.getSlotsAttr());
    slots[first] = {static_cast<double>(window->getBackwards(rank)), 0};
    slots[first + 1] = {static_cast<double>(state.missing), 0};
    return success();
  }
  if (auto op = dyn_cast<zrt::CountReplicatedOnceOp>(call)) {
    if (!isFirstOver(rank, op.getAxes()))
      slots[program.getFirstSlot(op.getSlotsAttr()) + op.getIndex()] = {};
    return success();
  }
  if (auto op = dyn_cast<zrt::CommitOp>(call)) {
    double outcome = slots[program.getFirstSlot(op.getOutcomeAttr())].value;
    // Written so that nan is refused, too.
    if (!(outcome >= 0 && outcome <= 5) || outcome != static_cast<int>(outcome))
      return op.emitOpError() << "got " << outcome << ", which is no outcome";
    state.outcome = static_cast<int>(outcome);
    state.committed = true;
    return success();
  }
  return call->emitOpError() << "is not supported by the interpreter";
}
