//===- Walker.cpp - The calls that the IR says a step makes ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Walker.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace zero;
using namespace zero::test;

Walker::Walker(ModuleOp module)
    : program(*module.getOps<zrt::ProgramOp>().begin()),
      calls(program, /*stageAxes=*/{}) {
  state = (*program.getOps<zrt::TransitionOp>().begin()).getState().str();
  for (auto bucket : module.getOps<BucketOp>())
    for (auto member : bucket.getMembers().getAsRange<FlatSymbolRefAttr>())
      bucketOf[member.getValue()] = FlatSymbolRefAttr::get(bucket);
}

zrt::TransitionOp Walker::find(zrt::Event event) {
  for (auto transition : program.getOps<zrt::TransitionOp>())
    if (transition.getState() == state && transition.getEvent() == event)
      return transition;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// When handlers run
//===----------------------------------------------------------------------===//

void Walker::walk(zrt::Event event, StringRef name) {
  zrt::TransitionOp transition = find(event);
  if (!transition && event == zrt::Event::begin_last)
    transition = find(zrt::Event::begin);
  if (!transition) {
    trace.push_back("refused in state " + state);
    return;
  }
  zrt::SequenceOp sequence = getSequence(transition);
  if (transition.begins()) {
    closed = 0;
    outstanding.clear();
    for (auto op : program->getParentOfType<ModuleOp>().getOps<ParameterOp>()) {
      FlatSymbolRefAttr bucket = bucketOf[op.getSymName()];
      if (findUnit(bucket))
        outstanding[bucket] = 1;
      else if (!op.getFrozen())
        outstanding[bucket] += std::max<int64_t>(op.getUses(), 1);
    }
  }
  if (event == zrt::Event::unshard || event == zrt::Event::reshard) {
    walkUnit(event, sequence, name);
    return;
  }
  if (event == zrt::Event::arrive) {
    if (sequence && !isOpen(sequence, bucketOf[name])) {
      waiting.push_back(name.str());
      return;
    }
    arrive(transition, name);
    if (sequence)
      closeComplete(sequence);
    return;
  }
  if (sequence)
    while (closed < int64_t(sequence.getBuckets().size()))
      close(sequence);
  run(transition, "");
}

zrt::SequenceOp Walker::getSequence(zrt::TransitionOp transition) {
  if (!transition.getSequenceAttr())
    return nullptr;
  return program.lookupSymbol<zrt::SequenceOp>(transition.getSequenceAttr());
}

FlatSymbolRefAttr Walker::getBucket(zrt::SequenceOp sequence, int64_t i) {
  return cast<FlatSymbolRefAttr>(sequence.getBuckets()[i]);
}

FlatSymbolRefAttr Walker::getMemory(Attribute bucket) {
  for (auto table : program.getOps<zrt::BucketTableOp>())
    if (table.getBucketAttr() == bucket)
      return program.lookupSymbol<zrt::BufferOp>(table.getGradientAttr())
          .getMemory();
  return nullptr;
}

/// Every earlier bucket in the same memory is closed.
bool Walker::isOpen(zrt::SequenceOp sequence, FlatSymbolRefAttr bucket) {
  for (Attribute other : sequence.getBuckets().getValue().drop_front(closed)) {
    if (other == bucket)
      return true;
    if (getMemory(other) == getMemory(bucket))
      return false;
  }
  return false;
}

/// The table of the unit whose gradients are in |bucket|; null if there is
/// none.
zrt::UnitTableOp Walker::findUnit(Attribute bucket) {
  for (auto table : program.getOps<zrt::UnitTableOp>()) {
    auto unit = program->getParentOfType<ModuleOp>().lookupSymbol<UnitOp>(
        table.getUnitAttr());
    for (auto member : unit.getMembers().getAsRange<FlatSymbolRefAttr>())
      if (bucketOf[member.getValue()] == bucket)
        return table;
  }
  return nullptr;
}

void Walker::walkUnit(zrt::Event event, zrt::SequenceOp sequence,
                      StringRef unit) {
  for (auto table : program.getOps<zrt::UnitTableOp>()) {
    if (table.getUnit() != unit)
      continue;
    if (event == zrt::Event::unshard)
      return run(table.getUnshardAttr(), "");
    for (auto &[bucket, missing] : outstanding)
      if (findUnit(bucket) == table)
        missing = 0;
    if (sequence)
      closeComplete(sequence);
    return run(table.getReshardAttr(), "");
  }
}

void Walker::arrive(zrt::TransitionOp transition, StringRef parameter) {
  run(transition, parameter);
  if (findUnit(bucketOf[parameter]))
    return;
  auto module = program->getParentOfType<ModuleOp>();
  if (!module.lookupSymbol<ParameterOp>(parameter).isUsedAnyTimes())
    --outstanding[bucketOf[parameter]];
}

/// Closes the next bucket; another one may open, and takes what waits for it.
void Walker::close(zrt::SequenceOp sequence) {
  run(cast<FlatSymbolRefAttr>(sequence.getHandlers()[closed]), "");
  ++closed;
  std::vector<std::string> others;
  for (const std::string &parameter : std::exchange(waiting, {})) {
    if (isOpen(sequence, bucketOf[parameter]))
      arrive(find(zrt::Event::arrive), parameter);
    else
      others.push_back(parameter);
  }
  waiting = others;
}

void Walker::closeComplete(zrt::SequenceOp sequence) {
  while (closed < int64_t(sequence.getBuckets().size()) &&
         outstanding[getBucket(sequence, closed)] == 0)
    close(sequence);
}

void Walker::run(zrt::TransitionOp transition, StringRef parameter) {
  for (auto handler : transition.getHandlers().getAsRange<FlatSymbolRefAttr>())
    run(handler, parameter);
  state = transition.getNext().str();
}

void Walker::run(FlatSymbolRefAttr handler, StringRef parameter) {
  ++handlers[handler.getValue()];
  auto op = program.lookupSymbol<zrt::HandlerOp>(handler);
  for (auto call : op.getBody().getOps<zrt::RuntimeCall>())
    trace.push_back(getText(call, parameter));
}

//===----------------------------------------------------------------------===//
// What they call
//===----------------------------------------------------------------------===//

/// Slots that each program writes, in the order of their declaration.
static Operands getWritten(zrt::ProgramOp program, FlatSymbolRefAttr scalars) {
  auto op = program.lookupSymbol<zrt::ScalarsOp>(scalars);
  Operands written;
  for (auto slots : program.getOps<zrt::SlotsOp>())
    for (int64_t i = 0; i < slots.size(); ++i)
      if (llvm::any_of(op.getBody().getOps<zrt::StoreSlotOp>(),
                       [&](auto store) {
                         return store.getSlots() == slots.getSymName() &&
                                int64_t(store.getIndex()) == i;
                       }))
        written.push_back("writes " + slotText(slots.getSymName().str(), i));
  return written;
}

std::string Walker::getText(zrt::RuntimeCall call, StringRef parameter) {
  Operands operands = calls.getOperands(call);
  Operation *op = call;
  if (isa<zrt::PackOp, zrt::WaitWritableOp>(op)) {
    zrt::BucketTableOp table = calls.getSymbols().getTable(bucketOf[parameter]);
    // In place of what no handler tells from another.
    operands.erase(operands.begin());
    operands.insert(operands.begin(),
                    {"event 1", parameter.str(), "tensor",
                     "writable " + calls.events(table.getWritableAttr())});
  }
  if (auto run = dyn_cast<zrt::RunScalarsOp>(op))
    llvm::append_range(operands, getWritten(program, run.getProgramAttr()));
  return callText(op->getName().stripDialect().str(), operands);
}
