//===- SelectStage.cpp - What ranks of one pipeline stage do --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/stage/Passes.h"

#include "dialect/zrt/Stages.h"

#include "mlir/IR/Builders.h"

namespace zero {
#define GEN_PASS_DEF_SELECTSTAGEPASS
#include "passes/stage/Passes.h.inc"
} // namespace zero

using namespace mlir;
using namespace zero;

/// Removes from |sequence| the buckets for which |isHere| does not hold.
static void shorten(zrt::SequenceOp sequence,
                    llvm::function_ref<bool(Attribute)> isHere) {
  SmallVector<Attribute> buckets, handlers;
  for (auto [bucket, handler] :
       llvm::zip_equal(sequence.getBuckets(), sequence.getHandlers()))
    if (isHere(bucket)) {
      buckets.push_back(bucket);
      handlers.push_back(handler);
    }
  Builder builder(sequence.getContext());
  sequence.setBucketsAttr(builder.getArrayAttr(buckets));
  sequence.setHandlersAttr(builder.getArrayAttr(handlers));
}

/// Erases handlers that nothing runs, and waits for events that no call
/// records: such events have passed.
static void eraseUnused(zrt::ProgramOp program) {
  llvm::DenseSet<Attribute> run, recorded;
  for (auto transition : program.getOps<zrt::TransitionOp>())
    run.insert(transition.getHandlers().begin(),
               transition.getHandlers().end());
  for (auto sequence : program.getOps<zrt::SequenceOp>())
    run.insert(sequence.getHandlers().begin(), sequence.getHandlers().end());
  for (auto unit : program.getOps<zrt::UnitTableOp>())
    for (Attribute handler : {unit.getUnshardAttr(), unit.getReshardAttr()})
      if (handler)
        run.insert(handler);
  for (auto handler : llvm::to_vector(program.getOps<zrt::HandlerOp>())) {
    if (!run.contains(FlatSymbolRefAttr::get(handler))) {
      handler.erase();
      continue;
    }
    for (auto record : handler.getBody().getOps<zrt::RecordOp>())
      recorded.insert(record.getEventAttr());
  }
  for (auto handler : program.getOps<zrt::HandlerOp>())
    for (auto wait : llvm::to_vector(handler.getBody().getOps<zrt::WaitOp>()))
      if (!recorded.contains(wait.getEventAttr()))
        wait.erase();
  for (auto table : program.getOps<zrt::BucketTableOp>())
    for (ArrayAttr list : {table.getWritableAttr(), table.getReadableAttr()})
      if (list)
        recorded.insert(list.begin(), list.end());
  for (auto event : llvm::to_vector(program.getOps<zrt::EventOp>()))
    if (!recorded.contains(FlatSymbolRefAttr::get(event)))
      event.erase();
}

void zero::selectStage(zrt::ProgramOp program,
                       ArrayRef<AxisCoordinate> coordinates) {
  SymbolTableCollection symbols;
  auto isElsewhere = [&](Operation *op) {
    ValueType place = zrt::getPlace(symbols, op);
    return place && !place.isOnStage(coordinates);
  };
  // Erases users first, since the look-up of their stages needs the symbols
  // that they name.
  SmallVector<Operation *> calls, tables, buffers;
  program.walk([&](zrt::HandlerOp handler) {
    for (Operation &call : handler.getBody().front())
      if (isElsewhere(&call))
        calls.push_back(&call);
  });
  for (Operation &op : program.getBody().front()) {
    if (auto sequence = dyn_cast<zrt::SequenceOp>(op))
      shorten(sequence, [&](Attribute symbol) {
        auto bucket = zrt::lookup<BucketOp>(symbols, program,
                                            cast<FlatSymbolRefAttr>(symbol));
        return bucket.getValueType().isOnStage(coordinates);
      });
    else if (isa<zrt::BucketTableOp, zrt::FrozenTableOp, zrt::StateOp,
                 zrt::AccumulatorOp>(op) &&
             isElsewhere(&op))
      tables.push_back(&op);
    else if (auto unit = dyn_cast<zrt::UnitTableOp>(op);
             unit && isElsewhere(unit)) {
      // Callers number units alike on all stages.
      unit.removeUnshardAttr();
      unit.removeReshardAttr();
    } else if (auto buffer = dyn_cast<zrt::BufferOp>(op);
               buffer && !buffer.getValueType().isOnStage(coordinates))
      buffers.push_back(buffer);
  }
  // Records and waits stay, since the order of other calls may depend on them.
  for (const auto &list : {calls, tables, buffers})
    for (Operation *op : list)
      op->erase();
  eraseUnused(program);
}

namespace {
struct SelectStagePass : zero::impl::SelectStagePassBase<SelectStagePass> {
  using SelectStagePassBase::SelectStagePassBase;

  LogicalResult select(zrt::ProgramOp program) {
    auto refuse = [&](const Twine &why) {
      InFlightDiagnostic diag = program.emitError() << why;
      diag.attachNote() << "give stage one coordinate for each of these axes: "
                        << llvm::to_vector_of<Attribute>(
                               zrt::getStageAxes(program));
      return diag;
    };
    SmallVector<AxisCoordinate> coordinates;
    SmallVector<StringRef> parts;
    StringRef(stage).split(parts, ':', -1, /*KeepEmpty=*/false);
    SmallVector<StringAttr> axes = zrt::getStageAxes(program);
    if (axes.empty())
      return failure(!parts.empty() && failed(emitError(program.getLoc())
                                              << "has no pipeline stages, got '"
                                              << stage << "'"));
    for (StringRef part : parts) {
      auto [name, text] = part.split('=');
      auto axis = StringAttr::get(&getContext(), name);
      int64_t coordinate = 0;
      if (!llvm::is_contained(axes, axis) || text.getAsInteger(10, coordinate))
        return refuse("expected an axis with stages and a coordinate, got '" +
                      part + "'");
      coordinates.push_back({axis, coordinate});
    }
    auto mesh = program->getParentOfType<ModuleOp>().lookupSymbol<MeshOp>(
        program.getMeshAttr());
    for (StringAttr axis : axes) {
      auto isGiven = [&](const AxisCoordinate &c) { return c.axis == axis; };
      auto *it = llvm::find_if(coordinates, isGiven);
      if (llvm::count_if(coordinates, isGiven) != 1)
        return refuse("stage must say once where on '" + axis.getValue() +
                      "' a rank is, got '" + stage + "'");
      if (it->coordinate < 0 || it->coordinate >= mesh.getAxisSize(axis))
        return refuse("axis '" + axis.getValue() + "' has no coordinate " +
                      Twine(it->coordinate));
    }
    selectStage(program, coordinates);
    return success();
  }

  void runOnOperation() override {
    for (auto program : getOperation().getOps<zrt::ProgramOp>())
      if (failed(select(program)))
        return signalPassFailure();
  }
};
} // namespace
