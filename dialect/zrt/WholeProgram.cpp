//===- WholeProgram.cpp - Rules of a program as a whole -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/CountOf.h"
#include "dialect/zero/Rules.h"
#include "dialect/zrt/CallDescription.h"
#include "dialect/zrt/Require.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace zrt;

/// program_c2 for one list of names.
static LogicalResult verifyAxes(Operation *op, ArrayAttr axes,
                                zero::MeshOp mesh) {
  llvm::StringSet<> seen;
  for (auto axis : axes.getAsRange<StringAttr>()) {
    if (!mesh.getAxisSize(axis))
      return op->emitOpError() << "names " << axis << ", which is no axis of "
                               << "mesh @" << mesh.getSymName();
    if (!seen.insert(axis).second)
      return op->emitOpError() << "names axis " << axis << " twice";
  }
  if (axes.empty())
    return op->emitOpError() << "needs an axis";
  return success();
}

/// buffer_c2 and program_c2
static LogicalResult verifyOnMesh(BufferOp buffer, zero::MeshOp mesh) {
  zero::ValueType type = buffer.getValueType();
  for (const zero::AxisPlacement &placement : type.getPlacements())
    if (!mesh.getAxisSize(placement.axis))
      return buffer.emitOpError()
             << "names " << placement.axis << ", which is no axis of mesh @"
             << mesh.getSymName();
  for (const zero::AxisCoordinate &c : type.getPresent()) {
    std::optional<int64_t> size = mesh.getAxisSize(c.axis);
    if (!size || c.coordinate >= *size)
      return buffer.emitOpError()
             << "is on coordinate " << c.coordinate << " of " << c.axis
             << ", which mesh @" << mesh.getSymName() << " does not have";
  }
  size_t last = type.getShape().size() - 1;
  for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
    int64_t ranks = mesh.getNumRanks(type.getAxesOfDim(dim));
    if (dim != last && extent != ranks)
      return buffer.emitOpError()
             << "has " << zero::countOf(extent, "row") << " in dimension "
             << dim << " for " << zero::countOf(ranks, "rank");
    if (extent % ranks != 0)
      return buffer.emitOpError()
             << "holds rows of " << zero::countOf(extent, "element")
             << ", which do not divide evenly over " << ranks << " ranks";
  }
  return success();
}

/// program_c3
static LogicalResult verifySlices(Operation *call, ArrayAttr axes,
                                  BufferOp buffer, zero::MeshOp mesh) {
  int64_t ranks =
      mesh.getNumRanks(llvm::to_vector(axes.getAsRange<StringAttr>()));
  if (buffer.getRowLength() % ranks == 0)
    return success();
  return call->emitOpError()
         << "works on slices of @" << buffer.getSymName() << ", whose rows of "
         << zero::countOf(buffer.getRowLength(), "element")
         << " do not divide evenly over " << ranks << " ranks of " << axes;
}

/// program_c4: ranks of other pipeline stages would not take part.
static LogicalResult verifyMeets(Operation *call, const CallArgument &axes,
                                 zero::ValueType place) {
  // A buffer on several pipeline stages is reduced over these stages.
  for (StringAttr axis : place.getStageAxes())
    if (llvm::is_contained(axes.list, axis) &&
        !(axes.isAtPlace && place.getCoordinates(axis).size() > 1))
      return call->emitOpError()
             << "is over " << axis
             << ", and works on what is on some of its coordinates only, "
             << place;
  return success();
}

std::vector<SlotsOp> ProgramOp::getInputSlots() {
  SymbolTableCollection symbols;
  std::vector<SlotsOp> slots;
  for (auto symbol : getInputs().getAsRange<FlatSymbolRefAttr>())
    slots.push_back(cast<SlotsOp>(symbols.lookupSymbolIn(*this, symbol)));
  return slots;
}

int64_t ProgramOp::getTokensInput() {
  for (auto [i, slots] : llvm::enumerate(getInputSlots()))
    if (slots.isTokens())
      return i;
  return -1;
}

/// slots_c2
static LogicalResult verifyInputs(ProgramOp program, zero::MeshOp mesh) {
  std::vector<SlotsOp> inputs = program.getInputSlots();
  llvm::StringSet<> names;
  for (auto slots : program.getOps<SlotsOp>()) {
    if (!slots.getOver() && !slots.isTokens() && !slots.getInputName() &&
        !slots.getHyper() && !slots.getPositive())
      continue;
    if (!llvm::is_contained(inputs, slots) || slots.size() != 1)
      return slots.emitOpError() << "with 'over', 'name', 'hyper', 'positive' "
                                    "or tokens must be an input of one scalar "
                                    "slot";
    if (auto name = slots.getInputName(); name && !names.insert(*name).second)
      return slots.emitOpError() << "is the second input '" << *name << "'";
    if (slots.getOver() && failed(verifyAxes(slots, *slots.getOver(), mesh)))
      return failure();
  }
  return success();
}

/// slots_c3
static LogicalResult verifySymbols(ProgramOp program,
                                   SymbolTableCollection &symbols) {
  SlotsOp tokens, lossScale;
  for (auto slots : program.getOps<SlotsOp>()) {
    if (!slots.getStandsFor())
      continue;
    StringRef name = *slots.getStandsFor();
    SlotsOp &first = slots.isTokens() ? tokens : lossScale;
    if (first) {
      InFlightDiagnostic diag =
          slots.emitOpError()
          << (slots.isTokens() ? "is a second number of tokens"
                               : "is a second loss scale");
      diag.attachNote(first.getLoc()) << "the first one is here";
      return diag;
    }
    first = slots;
    if (slots.isTokens())
      continue;
    if (!slots.isLossScale() || !program.getLossScaleAttr())
      return slots.emitOpError()
             << "is '" << name
             << "', which is neither tokens nor the loss_scale of a program "
                "that has one";
    bool isState =
        llvm::any_of(program.getOps<ScalarStateOp>(), [&](ScalarStateOp state) {
          return state.getSlots() == slots.getSymName() &&
                 state.getIndex() == 0;
        });
    if (!isState)
      return slots.emitOpError()
             << "is a loss scale, and no zrt.scalar_state: it would begin anew "
                "when a checkpoint is loaded";
  }
  // program_c5
  FlatSymbolRefAttr symbol = program.getLossScaleAttr();
  if (!symbol)
    return success();
  if (!isa_and_present<zero::LossScaleOp>(
          symbols.lookupSymbolIn(program->getParentOp(), symbol.getAttr())))
    return program.emitOpError() << "loss scale " << symbol
                                 << " is not a zero.loss_scale of this module";
  if (!lossScale)
    return program.emitOpError()
           << "has loss scale " << symbol << ", and no slots with its number";
  return success();
}

/// fill_missing_c1
static LogicalResult verifyFills(ProgramOp program) {
  llvm::DenseSet<Attribute> arriving;
  for (auto table : program.getOps<BucketTableOp>())
    arriving.insert(table.getBucketAttr());
  for (auto handler : program.getOps<HandlerOp>())
    for (auto fill : handler.getBody().getOps<FillMissingOp>())
      if (!arriving.contains(fill.getBucketAttr()))
        return fill.emitOpError() << "bucket " << fill.getBucketAttr()
                                  << " has no zrt.bucket_table in this program";
  return success();
}

/// The parameters of all buckets of the module. The program of a pipeline stage
/// has no tables of the buckets of other stages.
static llvm::DenseSet<Attribute> findMembers(ProgramOp program) {
  llvm::DenseSet<Attribute> members;
  auto module = program->getParentOfType<ModuleOp>();
  for (auto bucket : module.getOps<zero::BucketOp>())
    members.insert(bucket.getMembers().begin(), bucket.getMembers().end());
  return members;
}

/// record_c2
static LogicalResult verifyRecords(ProgramOp program) {
  llvm::DenseMap<Attribute, RecordOp> records;
  for (auto handler : program.getOps<HandlerOp>())
    for (auto record : handler.getBody().getOps<RecordOp>()) {
      auto [first, isNew] = records.try_emplace(record.getEventAttr(), record);
      if (isNew)
        continue;
      InFlightDiagnostic diag =
          record.emitOpError()
          << "event " << record.getEventAttr()
          << " is recorded by another call: declare an event for each";
      diag.attachNote(first->second.getLoc()) << "the other one is here";
      return diag;
    }
  return success();
}

/// unit_table_c1 and unit_table_c2
static LogicalResult verifyUnitTables(ProgramOp program) {
  llvm::DenseMap<Attribute, UnitTableOp> tables;
  for (auto table : program.getOps<UnitTableOp>()) {
    auto [first, isNew] = tables.try_emplace(table.getUnitAttr(), table);
    if (isNew)
      continue;
    InFlightDiagnostic diag = table.emitOpError()
                              << "is a second table of unit "
                              << table.getUnitAttr();
    diag.attachNote(first->second.getLoc()) << "the other one is here";
    return diag;
  }
  llvm::DenseMap<Attribute, Operation *> runBy;
  for (auto sequence : program.getOps<SequenceOp>())
    for (Attribute handler : sequence.getHandlers())
      runBy[handler] = sequence;
  for (auto transition : program.getOps<TransitionOp>())
    for (Attribute handler : transition.getHandlers())
      runBy[handler] = transition;
  for (auto unit : program.getOps<UnitTableOp>()) {
    if (unit.isElsewhere())
      continue;
    for (FlatSymbolRefAttr handler :
         {unit.getUnshardAttr(), unit.getReshardAttr()}) {
      auto [it, isNew] = runBy.try_emplace(handler, unit);
      if (isNew)
        continue;
      InFlightDiagnostic diag = unit.emitOpError()
                                << "handler " << handler << " has another use";
      diag.attachNote(it->second->getLoc()) << "which is here";
      return diag;
    }
  }
  return success();
}

/// record_c3 and wait_c2
static LogicalResult verifyCaller(ProgramOp program,
                                  SymbolTableCollection &symbols) {
  // By handler: an op that runs it in a call without a stream of the caller, or
  // in one behind which that stream does not wait.
  llvm::DenseMap<Attribute, Operation *> withoutStream, withoutGradient;
  for (auto sequence : program.getOps<SequenceOp>())
    for (Attribute handler : sequence.getHandlers())
      withoutStream[handler] = withoutGradient[handler] = sequence;
  for (auto transition : program.getOps<TransitionOp>())
    for (Attribute handler : transition.getHandlers()) {
      if (transition.getEvent() == Event::arrive)
        continue;
      withoutGradient[handler] = transition;
      if (transition.getEvent() != Event::apply &&
          transition.getEvent() != Event::measure)
        withoutStream[handler] = transition;
    }
  // A unit may be gathered ahead, in a call without a stream.
  for (auto unit : program.getOps<UnitTableOp>()) {
    if (unit.isElsewhere())
      continue;
    withoutStream[unit.getUnshardAttr()] = unit;
    withoutGradient[unit.getReshardAttr()] = unit;
  }
  auto refuse = [](Operation *call, const llvm::Twine &why, Operation *runs) {
    InFlightDiagnostic diag = call->emitOpError() << why;
    diag.attachNote(runs->getLoc()) << "which runs the handler";
    return diag;
  };
  llvm::DenseMap<Attribute, unsigned> numReturns; // by handler
  for (auto handler : program.getOps<HandlerOp>())
    for (Operation &call : handler.getBody().front()) {
      auto symbol = FlatSymbolRefAttr::get(handler);
      if (auto record = dyn_cast<RecordOp>(call)) {
        auto event = lookup<EventOp>(symbols, record, record.getEventAttr());
        Operation *runs = withoutStream.lookup(symbol);
        if (event && event.getStream() == Stream::caller && runs)
          return refuse(record,
                        "records the stream of the caller, and only arrive, "
                        "measure, apply and reshard have one",
                        runs);
      }
      auto wait = dyn_cast<WaitOp>(call);
      if (!wait || wait.getStream() != Stream::caller)
        continue;
      if (Operation *runs = withoutGradient.lookup(symbol))
        return refuse(wait,
                      "makes the stream of the caller wait, and only arrive "
                      "and unshard do",
                      runs);
      ++numReturns[symbol];
    }
  for (auto transition : program.getOps<TransitionOp>()) {
    unsigned returns = 0;
    for (Attribute handler : transition.getHandlers())
      returns += numReturns.lookup(handler);
    if (returns > 1)
      return transition.emitOpError()
             << "gives the arriving gradient back to the caller "
             << zero::countOf(returns, "time") << ", expected once";
  }
  return success();
}

bool ProgramOp::isScheduled() {
  if (!getOps<EventOp>().empty())
    return true;
  return llvm::any_of(getOps<HandlerOp>(), [](HandlerOp handler) {
    return llvm::any_of(
        handler.getBody().getOps<RuntimeCall>(),
        [](RuntimeCall call) { return call.getStream() != Stream::compute; });
  });
}

LogicalResult ProgramOp::verifyRegions() {
  // program_c1
  if (getResultNames().size() != getResults().size())
    return emitOpError() << "has "
                         << zero::countOf(getResults().size(), "result")
                         << " and "
                         << zero::countOf(getResultNames().size(), "name");
  llvm::StringSet<> names;
  for (auto name : getResultNames().getAsRange<StringAttr>())
    if (!names.insert(name).second)
      return emitOpError() << "has two results " << name;
  SymbolTableCollection symbols;
  for (ArrayAttr list : {getInputs(), getResults()})
    for (auto symbol : list.getAsRange<FlatSymbolRefAttr>())
      if (failed(require<SlotsOp>(symbols, *this, symbol)))
        return failure();
  auto mesh = lookup<zero::MeshOp>(symbols, *this, getMeshAttr());
  if (!mesh)
    return emitOpError() << "mesh " << getMeshAttr()
                         << " is not a zero.mesh of this module";
  if (failed(zero::verifyActivations(*this, mesh)) ||
      failed(verifyInputs(*this, mesh)) ||
      failed(verifySymbols(*this, symbols)) || failed(verifyRecords(*this)) ||
      failed(verifyUnitTables(*this)) || failed(verifyProtocol(*this)) ||
      failed(verifyCaller(*this, symbols)) || failed(verifyFills(*this)) ||
      failed(verifyStates(*this, mesh)) ||
      (getBatches() && !getBatches()->empty() &&
       failed(verifyAxes(*this, *getBatches(), mesh))))
    return failure();
  // buffer_c2
  for (auto buffer : getOps<BufferOp>())
    if (failed(verifyOnMesh(buffer, mesh)))
      return failure();
  llvm::DenseSet<Attribute> members = findMembers(*this);
  WalkResult result = walk([&](RuntimeCall call) {
    zero::ValueType place = getPlace(symbols, call);
    CallDescription description(call);
    // count_delivered_c1
    for (const CallArgument &argument : description.getArguments())
      if (argument.kind == CallArgument::Kind::parameter &&
          !members.contains(argument.symbol)) {
        call->emitOpError() << argument.symbol
                            << " is no parameter that is a member of a "
                               "zero.bucket";
        return WalkResult::interrupt();
      }
    // program_c2
    for (const CallArgument &argument : description.getArguments())
      if (argument.kind == CallArgument::Kind::axes && argument.list)
        if (failed(verifyAxes(call, argument.list, mesh)) ||
            (place && failed(verifyMeets(call, argument, place))))
          return WalkResult::interrupt();
    // program_c3
    Operation *op = call;
    ArrayAttr slicedOver;
    if (auto launch = dyn_cast<LaunchOp>(op))
      slicedOver = launch.getOwnAttr();
    if (auto gather = dyn_cast<Collective>(op);
        gather && !gather.getExchange().scatters)
      slicedOver = gather.getAxes();
    auto buffer = slicedOver && description.getPlace()
                      ? lookup<BufferOp>(symbols, op, description.getPlace())
                      : BufferOp();
    if (buffer && failed(verifySlices(op, slicedOver, buffer, mesh)))
      return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}
