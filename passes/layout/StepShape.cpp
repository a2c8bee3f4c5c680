//===- StepShape.cpp - The path of each gradient through a step -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/layout/StepShape.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace zero;

namespace {
/// Follows gradients through the step, op by op.
class Reader {
public:
  Reader(StepOp step, SymbolTableCollection &symbols) : symbols(symbols) {
    shape.step = step;
    shape.mesh =
        symbols.lookupNearestSymbolFrom<MeshOp>(step, step.getMeshAttr());
    for (auto unit : step->getParentOfType<ModuleOp>().getOps<UnitOp>())
      for (Attribute member : unit.getMembers())
        unitOf[member] = unit;
  }

  FailureOr<StepShape> read();

private:
  LogicalResult checkArgument(BlockArgument argument);
  LogicalResult readBackward(BackwardOp backward);
  LogicalResult readMicroBatches(MicroBatchesOp microBatches);
  LogicalResult readNorm(NormOp norm);
  LogicalResult readUpdate(UpdateOp update);
  /// |results|[i] belongs to the parameter of |operands|[i]. Each gradient has
  /// one path, so an operand must be the last value on its path so far.
  using VisitFn = llvm::function_ref<LogicalResult(ParameterOp)>;
  LogicalResult forward(Operation *op, ValueRange operands, ValueRange results,
                        VisitFn visit);
  /// Rejects |op|, which takes an earlier value on the path of |parameter| than
  /// the last one.
  LogicalResult rejectEarlier(Operation *op, ParameterOp parameter);
  LogicalResult readReduce(ReduceOp reduce);
  LogicalResult readClip(ClipOp clip);

  SymbolTableCollection &symbols;
  StepShape shape;
  /// The parameter whose gradient a value is.
  DenseMap<Value, ParameterOp> parameterOf;
  llvm::DenseMap<Attribute, UnitOp> unitOf; // by symbol of a parameter
  /// The last value on each path so far.
  DenseMap<ParameterOp, Value> last;
};
} // namespace

ValueType zero::getRowType(ValueType type, MeshOp mesh) {
  SmallVector<int64_t> shape;
  ValueType row = type;
  for (StringAttr axis : mesh.sortAxes(type.getAxes(PlacementKind::Sharded))) {
    AxisPlacement placement = type.getPlacement(axis);
    placement.dim = shape.size();
    shape.push_back(mesh.getNumRanks({axis}));
    row = row.withShape(SmallVector<int64_t>(shape.size() + 1, 1))
              .withPlacement(placement);
  }
  shape.push_back(0);
  return row.withShape(shape);
}

LogicalResult Reader::readBackward(BackwardOp backward) {
  for (auto [source, gradient] :
       llvm::zip_equal(backward.getSources().getAsRange<FlatSymbolRefAttr>(),
                       backward.getGradients())) {
    auto parameter =
        symbols.lookupNearestSymbolFrom<ParameterOp>(backward, source);
    if (!parameter)
      return backward.emitOpError()
             << "source " << source << " is already laid out";
    if (shape.paths.contains(parameter))
      return backward.emitOpError()
             << "gradient of " << source << " arrives in two places";
    auto type = cast<ValueType>(gradient.getType());
    parameterOf[gradient] = parameter;
    last[parameter] = gradient;
    GradientPath &path = shape.paths[parameter];
    path.backward = backward;
    path.arrivalType = getRowType(type, shape.mesh);
    path.storageType = parameter.getDtype();
    path.isOpenToTheEnd = parameter.isUsedAnyTimes();
    path.unit = unitOf.lookup(source);
  }
  return success();
}

LogicalResult Reader::rejectEarlier(Operation *op, ParameterOp parameter) {
  Operation *later = last.lookup(parameter).getDefiningOp();
  InFlightDiagnostic diag =
      op->emitOpError()
      << "takes the gradient of @" << parameter.getSymName()
      << " as it was before " << later->getName()
      << "; take its result instead: a gradient goes through "
         "zero.micro_batches, zero.reduce, any number of zero.clip and one "
         "zero.update";
  diag.attachNote(later->getLoc()) << later->getName() << " is here";
  return diag;
}

LogicalResult Reader::forward(Operation *op, ValueRange operands,
                              ValueRange results, VisitFn visit) {
  for (auto [operand, result] : llvm::zip_equal(operands, results)) {
    ParameterOp parameter = parameterOf.lookup(operand);
    if (!parameter)
      return op->emitOpError() << "operand is not the gradient of a parameter";
    if (last.lookup(parameter) != operand)
      return rejectEarlier(op, parameter);
    parameterOf[result] = parameter;
    last[parameter] = result;
    if (failed(visit(parameter)))
      return failure();
  }
  return success();
}

LogicalResult Reader::readMicroBatches(MicroBatchesOp microBatches) {
  for (Operation &op : microBatches.getBody().front().without_terminator()) {
    auto backward = dyn_cast<BackwardOp>(op);
    if (!backward)
      return op.emitOpError() << "is inside zero.micro_batches, which can have "
                                 "zero.backward only; move it behind the loop";
    if (failed(readBackward(backward)))
      return failure();
  }
  return forward(microBatches,
                 microBatches.getBody().front().getTerminator()->getOperands(),
                 microBatches.getSums(), [](ParameterOp) { return success(); });
}

LogicalResult Reader::readReduce(ReduceOp reduce) {
  return forward(reduce, reduce.getInputs(), reduce.getOutputs(),
                 [&](ParameterOp parameter) -> LogicalResult {
                   ReduceOp &first = shape.paths[parameter].reduce;
                   if (first)
                     return reduce.emitOpError()
                            << "reduces the gradient of @"
                            << parameter.getSymName()
                            << " a second time; remove one zero.reduce";
                   first = reduce;
                   return success();
                 });
}

LogicalResult Reader::readClip(ClipOp clip) {
  return forward(clip, clip.getInputs(), clip.getOutputs(),
                 [&](ParameterOp parameter) -> LogicalResult {
                   GradientPath &path = shape.paths[parameter];
                   if (!path.reduce)
                     return clip.emitOpError()
                            << "clips the gradient of @"
                            << parameter.getSymName()
                            << " before it is reduced; clip the result of "
                               "zero.reduce";
                   path.clips.push_back(clip);
                   return success();
                 });
}

LogicalResult Reader::readNorm(NormOp norm) {
  for (Value input : norm.getInputs()) {
    ParameterOp parameter = parameterOf.lookup(input);
    if (!parameter)
      return norm.emitOpError()
             << "takes a value that is not the gradient of a parameter; leave "
                "that value out of the norm";
    Operation *source = input.getDefiningOp();
    if (!isa<ReduceOp, ClipOp>(source))
      return norm.emitOpError()
             << "takes a value that is no result of zero.reduce or zero.clip; "
                "take the norm of the reduced gradients, or of the clipped "
                "ones";
    GradientPath &path = shape.paths[parameter];
    if (llvm::any_of(path.norms, [&](auto &n) { return n.first == norm; }))
      return norm.emitOpError()
             << "counts the gradient of @" << parameter.getSymName()
             << " twice; list it once";
    auto clip = llvm::find(path.clips, source);
    unsigned clips =
        clip == path.clips.end() ? 0 : clip - path.clips.begin() + 1;
    // It is computed from the norm before the clip, which may overflow to
    // infinity where the clipped gradients are 0.
    if (clips > 0 && shape.step.getNonfinite() == Nonfinite::apply)
      return norm.emitOpError()
             << "takes a clipped gradient in a step that is applied even if a "
                "norm is infinite; remove 'nonfinite apply', or take the norm "
                "of the gradients before zero.clip";
    path.norms.emplace_back(norm, clips);
  }
  return success();
}

LogicalResult Reader::readUpdate(UpdateOp update) {
  auto group =
      symbols.lookupNearestSymbolFrom<GroupOp>(update, update.getGroupAttr());
  for (auto [member, gradient] :
       llvm::zip_equal(group.getMembers().getAsRange<FlatSymbolRefAttr>(),
                       update.getGradients())) {
    ParameterOp parameter = parameterOf.lookup(gradient);
    if (!parameter)
      return update.emitOpError()
             << "operand is not the gradient of a parameter";
    if (parameter.getSymName() != member.getValue()) {
      InFlightDiagnostic diag = update.emitOpError()
                                << "updates " << member
                                << " with the gradient of @"
                                << parameter.getSymName();
      diag.attachNote(group.getLoc()) << "parameter group is declared here";
      return diag;
    }
    if (last.lookup(parameter) != gradient)
      return rejectEarlier(update, parameter);
    GradientPath &path = shape.paths[parameter];
    if (!path.reduce)
      return update.emitOpError()
             << "updates " << member
             << " with a gradient that is not reduced; update with the result "
                "of zero.reduce";
    path.optimizer = update.getOptimizerAttr().getAttr();
    shape.updates[parameter] = update;
  }
  return success();
}

bool zero::isOfScalars(ReduceOp op) {
  return llvm::all_of(op.getInputs(),
                      [](Value input) { return isa<BlockArgument>(input); });
}

/// Checks that the caller can pass a value of the type of |argument|.
LogicalResult Reader::checkArgument(BlockArgument argument) {
  auto type = cast<ValueType>(argument.getType());
  // zero.reduce divides by the scale.
  bool isReduced = type.has(PlacementKind::Partial);
  if (!type.withScale({}).isShare() || (type.isScaled() && !isReduced))
    return shape.step.emitOpError()
           << "argument " << argument.getArgNumber()
           << " must be replicated, or partial with or without a scale, got "
           << type;
  for (const AxisPlacement &placement : type.getPlacements())
    if (!shape.mesh.getAxisSize(placement.axis)) {
      InFlightDiagnostic diag =
          shape.step.emitOpError()
          << "argument " << argument.getArgNumber() << " is partial over '"
          << placement.axis.getValue() << "', which is no axis of mesh @"
          << shape.mesh.getSymName();
      diag.attachNote(shape.mesh.getLoc()) << "axes are declared here";
      return diag;
    }
  return success();
}

FailureOr<StepShape> Reader::read() {
  for (BlockArgument argument : shape.step.getBody().getArguments())
    if (failed(checkArgument(argument)))
      return failure();
  for (Operation &op : shape.step.getBody().front()) {
    LogicalResult result = success();
    if (auto microBatches = dyn_cast<MicroBatchesOp>(op)) {
      result = readMicroBatches(microBatches);
    } else if (auto reduce = dyn_cast<ReduceOp>(op);
               reduce && !isOfScalars(reduce)) {
      result = readReduce(reduce);
    } else if (auto norm = dyn_cast<NormOp>(op)) {
      result = readNorm(norm);
    } else if (auto clip = dyn_cast<ClipOp>(op)) {
      result = readClip(clip);
    } else if (auto update = dyn_cast<UpdateOp>(op)) {
      result = readUpdate(update);
    } else if (llvm::any_of(op.getOperands(), [&](Value operand) {
                 return parameterOf.contains(operand);
               })) {
      result = op.emitOpError() << "takes a gradient, which only "
                                   "zero.micro_batches, zero.reduce, "
                                   "zero.norm, zero.clip and zero.update can";
    }
    if (failed(result))
      return failure();
  }
  if (shape.paths.empty()) {
    shape.step.emitOpError() << "has no gradients";
    return failure();
  }
  return std::move(shape);
}

FailureOr<StepShape> zero::readStep(StepOp step,
                                    SymbolTableCollection &symbols) {
  return Reader(step, symbols).read();
}
