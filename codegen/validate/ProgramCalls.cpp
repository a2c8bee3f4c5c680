//===- ProgramCalls.cpp - What the handlers of a program call -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/validate/ProgramCalls.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace zero;

ProgramCalls::ProgramCalls(zrt::ProgramOp program,
                           ArrayRef<StringAttr> stageAxes)
    : program(program),
      mesh(program->getParentOfType<ModuleOp>().lookupSymbol<MeshOp>(
          program.getMeshAttr())),
      stageAxes(stageAxes), symbols(program) {
  llvm::DenseMap<OperationName, int64_t> counts;
  for (Operation &op : program.getBody().front())
    if (auto name =
            op.getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName()))
      places[name] = counts[op.getName()]++;
}

static std::string nameOf(FlatSymbolRefAttr symbol) {
  return symbol.getValue().str();
}

static std::string streamOf(zrt::RuntimeCall call) {
  return streamText(static_cast<int64_t>(call.getStream()));
}

/// The pipeline stages that have a value of |type|, a bit for each, row-major
/// over the axes of stages. 0: the value is the same on all of them over
/// |names|.
int64_t ProgramCalls::getStages(ArrayRef<StringAttr> names,
                                ValueType type) const {
  if (!type || llvm::all_of(names, [&](StringAttr axis) {
        return type.getCoordinates(axis).empty();
      }))
    return 0;
  MeshOp op = mesh;
  // From the last axis on, the stages over the axes so far.
  SmallVector<bool> isOn = {true};
  for (StringAttr axis : llvm::reverse(stageAxes)) {
    SmallVector<int64_t> held = type.getCoordinates(axis);
    SmallVector<bool> outer;
    for (int64_t c = 0; c < *op.getAxisSize(axis); ++c)
      for (bool inner : isOn)
        outer.push_back(inner && (held.empty() || llvm::is_contained(held, c)));
    isOn = std::move(outer);
  }
  int64_t stages = 0;
  for (auto [i, on] : llvm::enumerate(isOn))
    if (on)
      stages |= int64_t(1) << i;
  return stages;
}

std::string ProgramCalls::axes(ArrayRef<StringAttr> names,
                               ValueType type) const {
  if (names.empty())
    return "none";
  std::vector<std::string> texts;
  MeshOp op = mesh;
  for (StringAttr axis : op.sortAxes(SmallVector<StringAttr>(names)))
    texts.push_back(axis.str());
  return axesText(texts, getStages(names, type));
}

std::string ProgramCalls::axes(ArrayAttr names, ValueType type) const {
  return axes(SmallVector<StringAttr>(names.getAsRange<StringAttr>()), type);
}

std::string ProgramCalls::event(FlatSymbolRefAttr symbol) const {
  auto op = symbols.lookup<zrt::EventOp>(symbol);
  return eventText(nameOf(symbol), static_cast<int64_t>(op.getStream()));
}

std::string ProgramCalls::events(ArrayAttr list) const {
  std::string names;
  if (list)
    for (auto symbol : list.getAsRange<FlatSymbolRefAttr>())
      names += event(symbol) + " ";
  return names;
}

Operands ProgramCalls::getLaunch(zrt::LaunchOp op) const {
  Operands operands{"kernel " + std::to_string(getPlace(op.getKernelAttr()))};
  int64_t elements = 0;
  for (auto buffer : op.getBuffers().getAsRange<FlatSymbolRefAttr>()) {
    operands.push_back(nameOf(buffer));
    elements = symbols.lookup<zrt::BufferOp>(buffer).getRowLength();
  }
  auto segments = symbols.lookup<zrt::SegmentsOp>(op.getSegmentsAttr());
  int64_t begin = 0;
  for (auto [i, end] : llvm::enumerate(segments.getEnds())) {
    std::string slot = "none";
    if (!segments.getScalars().empty())
      slot = slotText(nameOf(cast<FlatSymbolRefAttr>(
                          segments.getScalars()[segments.getRows()[i]])),
                      0);
    operands.push_back(segmentText(begin, end, slot));
    begin = end;
  }
  operands.push_back(std::to_string(elements) + " elements");
  operands.push_back("own " + (op.getOwn() ? axes(*op.getOwn()) : "none"));
  operands.push_back("sum " +
                     (op.getSumAttr()
                          ? slotText(nameOf(op.getSumAttr()), op.getSumIndex())
                          : "none"));
  operands.push_back(streamOf(op));
  return operands;
}

Operands ProgramCalls::getOperands(Operation &call) {
  return TypeSwitch<Operation *, Operands>(&call)
      .Case<zrt::AllocateOp, zrt::ReleaseOp>(
          [&](auto op) { return Operands{nameOf(op.getBufferAttr())}; })
      .Case([&](zrt::AllReduceOp op) {
        return Operands{
            nameOf(op.getBufferAttr()), nameOf(op.getResultBuffer()),
            axes(op.getAxes(), zrt::getPlace(tables, op)), streamOf(op)};
      })
      .Case([&](zrt::AllGatherOp op) {
        return Operands{nameOf(op.getBufferAttr()), axes(op.getAxes()),
                        streamOf(op)};
      })
      .Case<zrt::ReduceScatterOp, zrt::ReduceScatterAddOp>([&](auto op) {
        return Operands{nameOf(op.getSourceAttr()), nameOf(op.getTargetAttr()),
                        axes(op.getAxes()), streamOf(op)};
      })
      .Case([&](zrt::CopyOp op) {
        return Operands{nameOf(op.getSourceAttr()), nameOf(op.getTargetAttr()),
                        streamOf(op)};
      })
      .Case([&](zrt::KeepOnRootOp op) {
        return Operands{nameOf(op.getBufferAttr()), axes(op.getAxes())};
      })
      .Case([&](zrt::CountReplicatedOnceOp op) {
        return Operands{slotText(op.getSlots().str(), op.getIndex()),
                        axes(op.getAxes())};
      })
      .Case([&](zrt::SetRoleOp op) {
        return Operands{nameOf(op.getBufferAttr()),
                        "role " + std::to_string(int64_t(op.getRole()))};
      })
      .Case([&](zrt::PackOp op) {
        return Operands{"the gradient of the event",
                        op.getAccumulate() ? "add" : "store"};
      })
      .Case([&](zrt::FillMissingOp op) {
        return Operands{nameOf(op.getBucketAttr())};
      })
      .Case([&](zrt::LaunchOp op) { return getLaunch(op); })
      .Case([&](zrt::RunScalarsOp op) {
        return Operands{"program " +
                        std::to_string(getPlace(op.getProgramAttr()))};
      })
      .Case([&](zrt::CountArrivalsOp op) {
        return Operands{slotText(op.getSlots().str(), 0),
                        slotText(op.getSlots().str(), 1)};
      })
      .Case([&](zrt::AllReduceScalarsOp op) {
        auto slots = symbols.lookup<zrt::SlotsOp>(op.getSlotsAttr());
        return Operands{slotText(op.getSlots().str(), 0),
                        std::to_string(slots.size()), axes(op.getAxes()),
                        streamOf(op)};
      })
      .Case([&](zrt::CommitOp op) {
        return Operands{slotText(op.getOutcome().str(), 0)};
      })
      .Case(
          [&](zrt::RecordOp op) { return Operands{event(op.getEventAttr())}; })
      .Case([&](zrt::WaitOp op) {
        return Operands{event(op.getEventAttr()), streamOf(op)};
      })
      .Case([&](zrt::WaitWritableOp) {
        return Operands{"the gradient of the event"};
      })
      .Case([&](zrt::CopyScalarsOp) { return Operands{}; })
      .Default(
          [](Operation *) { return Operands{"unknown to the validator"}; });
}

std::string ProgramCalls::getText(Operation &call) {
  return callText(call.getName().stripDialect().str(), getOperands(call));
}
