//===- Tables.cpp - A scheduled program as rows of numbers ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/host/Tables.h"

#include "codegen/host/Activations.h"
#include "codegen/host/InputFlow.h"

#include "dialect/zrt/Stages.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace zero;

namespace {
class TableReader {
public:
  TableReader(zrt::ProgramOp program, const Tables *whole)
      : program(program), whole(whole) {}

  FailureOr<Tables> build();

private:
  void addMesh(MeshOp mesh);
  /// The row of a set of axes; -1 for none.
  int64_t addAxes(ArrayRef<StringAttr> axes, ValueType type = nullptr);
  void addSlots();
  void addInputSets();
  void addEvents();
  /// Appends |events|, null for none, and returns where they begin.
  int64_t addEventList(ArrayAttr events);
  void addBuffers();
  void addSegments();
  void addDimensions(ValueType type, MeshOp mesh);
  LogicalResult addBuckets(MeshOp mesh);
  void addStates();
  void addAccumulators(MeshOp mesh);
  void addUnits();
  void addFrozen();
  void addProtocol();
  int64_t bits(double value) { return llvm::bit_cast<int64_t>(value); }

  zrt::ProgramOp program;
  const Tables *whole;
  SymbolTableCollection symbols;
  Tables tables;
};
} // namespace

void TableReader::addSlots() {
  for (auto op : program.getOps<zrt::SlotsOp>()) {
    tables.slotRows[FlatSymbolRefAttr::get(op)] = tables.slots.size();
    if (op.isLossScale())
      tables.lossScale = tables.slots.size();
    for (double initial : op.getInitial())
      tables.slots.push_back(
          {tables.strings.add(op.getSymName()), bits(initial)});
  }
  SmallVector<zero_rt_input_check> checks = findInputFlow(program).checks;
  for (auto [i, input] : llvm::enumerate(program.getInputSlots())) {
    SmallVector<StringAttr> over;
    if (input.getOver())
      llvm::append_range(over, input.getOver()->getAsRange<StringAttr>());
    tables.inputs.push_back(
        {tables.getSlot(FlatSymbolRefAttr::get(input)), addAxes(over),
         input.isTokens(),
         // The other stages may depend on it.
         whole ? whole->inputs[i].check : checks[i],
         tables.strings.add(input.getHyper().value_or(""))});
    tables.inputNames.push_back(
        tables.strings.add(input.getInputName().value_or("")));
  }
  for (auto [name, result] :
       llvm::zip_equal(program.getResultNames().getAsRange<StringAttr>(),
                       program.getResults().getAsRange<FlatSymbolRefAttr>())) {
    tables.results.push_back(
        {tables.strings.add(name), tables.getSlot(result)});
    tables.resultNames.push_back(name.str());
  }
}

void TableReader::addMesh(MeshOp mesh) {
  for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>()) {
    tables.axisRows[axis.getName()] = tables.axes.size();
    tables.axes.push_back({tables.strings.add(axis.getName()), axis.getSize()});
  }
  // All stages know the same sets in the same order.
  if (whole) {
    tables.axisSets = whole->axisSets;
    tables.axisSetStages = whole->axisSetStages;
    tables.stageAxes = whole->stageAxes;
  } else {
    tables.stageAxes = zrt::getStageAxes(program);
  }
  // The sets that calls name.
  program.walk([&](zrt::RuntimeCall call) {
    zrt::CallDescription description(call);
    for (const zrt::CallArgument &argument : description.getArguments())
      if (argument.kind == zrt::CallArgument::Kind::axes && argument.list)
        addAxes(SmallVector<StringAttr>(argument.list.getAsRange<StringAttr>()),
                argument.isAtPlace ? zrt::getPlace(symbols, call)
                                   : ValueType());
  });
}

int64_t TableReader::addAxes(ArrayRef<StringAttr> axes, ValueType type) {
  if (axes.empty())
    return -1;
  int64_t set = tables.getSet(axes);
  int64_t stages = type ? tables.getStages(axes, type) : 0;
  int64_t row = tables.findAxes(set, stages);
  if (row < 0) {
    row = tables.axisSets.size();
    tables.axisSets.push_back(set);
    tables.axisSetStages.push_back(stages);
  }
  return row;
}

void TableReader::addEvents() {
  for (auto op : program.getOps<zrt::EventOp>()) {
    tables.eventRows[FlatSymbolRefAttr::get(op)] = tables.streamEvents.size();
    tables.streamEvents.push_back({tables.strings.add(op.getSymName()),
                                   static_cast<int64_t>(op.getStream())});
  }
}

int64_t TableReader::addEventList(ArrayAttr events) {
  int64_t first = tables.eventLists.size();
  if (events)
    for (auto symbol : events.getAsRange<FlatSymbolRefAttr>())
      tables.eventLists.push_back(tables.getEvent(symbol));
  return first;
}

void TableReader::addBuffers() {
  for (auto op : program.getOps<zrt::BufferOp>()) {
    tables.bufferRows[FlatSymbolRefAttr::get(op)] = tables.buffers.size();
    zero_rt_buffer_row row = {};
    row.name = tables.strings.add(op.getSymName());
    row.role = static_cast<int64_t>(op.getRole());
    row.space = static_cast<int64_t>(op.getSpace());
    row.dtype = getDtype(op.getValueType().getElementType());
    row.elements = op.getRowLength();
    row.owners = addAxes(op.getOwners());
    row.on_demand = op.getOnDemand();
    row.fill = bits(op.getFill().convertToDouble());
    tables.buffers.push_back(row);
  }
  for (auto [i, op] : llvm::enumerate(program.getOps<zrt::BufferOp>()))
    tables.buffers[i].shares =
        op.getSharesAttr() ? tables.getBuffer(op.getSharesAttr()) : -1;
}

void TableReader::addSegments() {
  for (auto op : program.getOps<zrt::SegmentsOp>()) {
    tables.tableRows[FlatSymbolRefAttr::get(op)] = tables.tables.size();
    tables.tables.push_back({static_cast<int64_t>(tables.segments.size()),
                             static_cast<int64_t>(op.getEnds().size())});
    int64_t begin = 0;
    for (auto [i, end] : llvm::enumerate(op.getEnds())) {
      int64_t slot = -1;
      if (!op.getScalars().empty())
        slot = tables.getSlot(
            cast<FlatSymbolRefAttr>(op.getScalars()[op.getRows()[i]]));
      tables.segments.push_back({begin, end, slot});
      begin = end;
    }
  }
}

/// Adds the inputs on which the update of each parameter depends.
void TableReader::addInputSets() {
  InputFlow flow = findInputFlow(program);
  for (const llvm::BitVector &set : flow.sets)
    for (size_t word = 0; word * 64 < set.size(); ++word) {
      uint64_t bits = 0;
      for (size_t i = word * 64; i < set.size() && i < word * 64 + 64; ++i)
        bits |= uint64_t(set.test(i)) << (i % 64);
      tables.inputSets.push_back(static_cast<int64_t>(bits));
    }
  tables.numInputSets = tables.inputSets.empty() ? 0 : flow.sets.size();
  for (const std::string &name : tables.parameterNames)
    tables.parameterInputs.push_back(
        flow.setOf.lookup(StringAttr::get(program.getContext(), name)));
}

/// Adds the shape of the parameter of |type|.
void TableReader::addDimensions(ValueType type, MeshOp mesh) {
  for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
    SmallVector<StringAttr> axes = type.getAxesOfDim(dim);
    tables.dimensions.push_back(
        {extent / mesh.getNumRanks(axes), axes.empty() ? -1 : addAxes(axes)});
  }
  tables.dimensionEnds.push_back(tables.dimensions.size());
}

LogicalResult TableReader::addBuckets(MeshOp mesh) {
  // Parameters in order of declaration; their numbers are the user's. Frozen
  // ones have none.
  llvm::DenseMap<Attribute, int64_t> &rowOf = tables.parameterRows;
  SmallVector<ParameterOp> declared;
  auto module = program->getParentOfType<ModuleOp>();
  for (auto op : module.getOps<ParameterOp>()) {
    if (op.getFrozen())
      continue;
    rowOf[FlatSymbolRefAttr::get(op)] = tables.parameters.size();
    declared.push_back(op);
    zero_rt_parameter_row row = {};
    row.name = tables.strings.add(op.getSymName());
    row.dtype = getDtype(op.getDtype());
    row.gradient_dtype = row.dtype;
    row.bucket = -1;
    row.optional = op.getOptional();
    static_assert(ParameterOp::kAnyUses == ZERO_RT_USES_ANY);
    row.uses = op.getUses();
    tables.parameters.push_back(row);
    tables.parameterNames.push_back(op.getSymName().str());
    addDimensions(op.getValueType(), mesh);
  }
  for (auto arrivals : program.getOps<zrt::BucketTableOp>()) {
    auto bucket =
        zrt::lookup<BucketOp>(symbols, arrivals, arrivals.getBucketAttr());
    int64_t index = tables.buckets.size();
    tables.bucketRows[arrivals.getBucketAttr()] = index;
    zero_rt_bucket_row row = {};
    row.name = tables.strings.add(bucket.getSymName());
    row.elements = bucket.getRowLength();
    ValueType type = bucket.getValueType();
    SmallVector<StringAttr> rows = type.getAxes(PlacementKind::Sharded);
    llvm::append_range(rows, type.getStageAxes());
    row.rows = addAxes(rows);
    auto gradient = zrt::lookup<zrt::BufferOp>(symbols, arrivals,
                                               arrivals.getGradientAttr());
    SmallVector<StringAttr> alike;
    for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>())
      if (gradient.getValueType().getPlacement(axis.getName()).kind ==
              PlacementKind::Replicated &&
          type.getCoordinates(axis.getName()).empty())
        alike.push_back(axis.getName());
    row.replicated = addAxes(alike);
    row.gradient_buffer = tables.getBuffer(arrivals.getGradientAttr());
    row.parameter_buffer = tables.getBuffer(arrivals.getParametersAttr());
    row.master_buffer = arrivals.getMasterAttr()
                            ? tables.getBuffer(arrivals.getMasterAttr())
                            : -1;
    row.store_kernel = tables.getKernel(arrivals.getStoreAttr());
    row.add_kernel = tables.getKernel(arrivals.getAddAttr());
    row.staging_buffer = arrivals.getStagingAttr()
                             ? tables.getBuffer(arrivals.getStagingAttr())
                             : -1;
    ArrayAttr writable = arrivals.getWritableAttr();
    row.first_writable = addEventList(writable);
    row.num_writable = writable ? writable.size() : 0;
    ArrayAttr readable = arrivals.getReadableAttr();
    row.first_readable = addEventList(readable);
    row.num_readable = readable ? static_cast<int64_t>(readable.size()) : -1;
    tables.buckets.push_back(row);
    for (auto [i, member] : llvm::enumerate(bucket.getMembers())) {
      zero_rt_parameter_row &parameter = tables.parameters[rowOf[member]];
      parameter.elements = getNumHeld(bucket, declared[rowOf[member]]);
      parameter.gradient_dtype = getDtype(bucket.getArrivalType());
      parameter.bucket = index;
      parameter.offset = bucket.getOffsets()[i];
      parameter.extent = bucket.getExtents()[i];
    }
  }
  for (auto [i, row] : llvm::enumerate(tables.parameters))
    if (row.bucket < 0 && !whole)
      return program.emitError() << "parameter @" << tables.parameterNames[i]
                                 << " is in no bucket of the program";
  return success();
}

void TableReader::addStates() {
  for (auto op : program.getOps<zrt::StateOp>())
    tables.states.push_back({tables.strings.add(op.getRole()),
                             tables.getBucket(op.getBucketAttr()),
                             tables.getBuffer(op.getBufferAttr())});
  for (auto op : program.getOps<zrt::ScalarStateOp>())
    tables.states.push_back({tables.strings.add(op.getRole()), -1,
                             tables.getSlot(op.getSlotsAttr()) +
                                 static_cast<int64_t>(op.getIndex())});
}

/// Sets the factor |prescaled| of |row|.
static void addPrescaled(ScaleAttr prescaled, MeshOp mesh,
                         zero_rt_accumulator_row &row) {
  Scale factors = mesh.expandFlattened(prescaled.getFactors());
  row.passes_power = getExponent(factors, kAccumulation);
  row.tokens_power = getExponent(factors, kTokens);
  row.numerator = row.denominator = 1;
  bool fits = true;
  for (const ScaleFactor &factor : factors)
    for (int64_t i = 0, size = mesh.getAxisSize(factor.symbol).value_or(1);
         i < std::abs(factor.exponent); ++i) {
      int64_t &part = factor.exponent < 0 ? row.denominator : row.numerator;
      fits &= part < (int64_t(1) << 62) / size;
      part *= fits ? size : 1;
    }
  if (!fits)
    row.numerator = row.denominator = 0;
}

void TableReader::addAccumulators(MeshOp mesh) {
  if (ArrayAttr batches = program.getBatchesAttr())
    tables.batchRanks =
        mesh.getNumRanks(llvm::to_vector(batches.getAsRange<StringAttr>()));
  llvm::DenseMap<Attribute, zrt::AccumulatorOp> accumulators;
  for (auto op : program.getOps<zrt::AccumulatorOp>())
    accumulators[op.getBucketAttr()] = op;
  if (accumulators.empty())
    return;
  auto getPartial = [&](FlatSymbolRefAttr symbol) {
    auto buffer = zrt::lookup<zrt::BufferOp>(symbols, program, symbol);
    return tables.getSet(buffer.getValueType().getAxes(PlacementKind::Partial));
  };
  for (auto table : program.getOps<zrt::BucketTableOp>()) {
    zrt::AccumulatorOp op = accumulators[table.getBucketAttr()];
    FlatSymbolRefAttr buffer = op.getBufferAttr();
    zero_rt_accumulator_row &row = tables.accumulators.emplace_back();
    row.buffer = tables.getBuffer(buffer);
    row.partial = getPartial(buffer);
    row.arrives = getPartial(table.getGradientAttr());
    addPrescaled(op.getPrescaledAttr(), mesh, row);
  }
}

/// Whether no handler but those that close buckets reads the buffers that their
/// gradients arrive in.
static bool leavesScratch(zrt::ProgramOp program, zrt::SequenceOp sequence) {
  llvm::DenseSet<Attribute> gradients, closing;
  for (auto op : program.getOps<zrt::BucketTableOp>())
    if (llvm::is_contained(sequence.getBuckets(), op.getBucketAttr()))
      gradients.insert(op.getGradientAttr());
  for (auto op : program.getOps<zrt::SequenceOp>())
    closing.insert(op.getHandlers().begin(), op.getHandlers().end());
  for (auto handler : program.getOps<zrt::HandlerOp>()) {
    if (closing.contains(FlatSymbolRefAttr::get(handler)))
      continue;
    for (auto call : handler.getBody().getOps<zrt::RuntimeCall>()) {
      zrt::CallDescription description(call);
      for (const zrt::CallArgument &argument : description.getArguments()) {
        bool isUsed = argument.use != zrt::CallArgument::Use::none &&
                      gradients.contains(argument.symbol);
        bool isOperand = argument.kind == zrt::CallArgument::Kind::buffers &&
                         llvm::any_of(argument.list, [&](Attribute buffer) {
                           return gradients.contains(buffer);
                         });
        if (isUsed || isOperand)
          return false;
      }
    }
  }
  return true;
}

void TableReader::addProtocol() {
  llvm::StringMap<int64_t> states;
  auto getState = [&](StringRef name) {
    auto [it, isNew] = states.try_emplace(name, tables.protocolStates.size());
    if (isNew)
      tables.protocolStates.push_back(tables.strings.add(name));
    return it->second;
  };
  llvm::DenseMap<Attribute, int64_t> sequenceRows;
  for (auto op : program.getOps<zrt::SequenceOp>()) {
    sequenceRows[FlatSymbolRefAttr::get(op)] = tables.sequences.size();
    tables.sequences.push_back(
        {static_cast<int64_t>(tables.sequenceEntries.size()),
         static_cast<int64_t>(op.getBuckets().size()),
         /*reserved=*/0, leavesScratch(program, op)});
    for (auto [bucket, handler] :
         llvm::zip_equal(op.getBuckets().getAsRange<FlatSymbolRefAttr>(),
                         op.getHandlers().getAsRange<FlatSymbolRefAttr>()))
      tables.sequenceEntries.push_back(
          {tables.getBucket(bucket), tables.getHandler(handler)});
  }
  for (auto op : program.getOps<zrt::TransitionOp>()) {
    int64_t first = tables.transitionHandlers.size();
    for (auto handler : op.getHandlers().getAsRange<FlatSymbolRefAttr>())
      tables.transitionHandlers.push_back(tables.getHandler(handler));
    // In this order: the first state named is the initial one.
    int64_t state = getState(op.getState());
    tables.transitions.push_back(
        {state, static_cast<int64_t>(op.getEvent()), getState(op.getNext()),
         first, static_cast<int64_t>(op.getHandlers().size()),
         op.getSequenceAttr() ? sequenceRows.lookup(op.getSequenceAttr())
                              : -1});
  }
}

void TableReader::addUnits() {
  llvm::DenseMap<Attribute, int64_t> unitRows;
  for (auto op : program.getOps<zrt::UnitTableOp>()) {
    unitRows[op.getUnitAttr()] = tables.units.size();
    zero_rt_unit_row row = {tables.strings.add(op.getUnit()), -1, -1};
    if (!op.isElsewhere()) {
      row.unshard = tables.getHandler(op.getUnshardAttr());
      row.reshard = tables.getHandler(op.getReshardAttr());
    }
    tables.units.push_back(row);
  }
  if (unitRows.empty())
    return;
  auto module = program->getParentOfType<ModuleOp>();
  for (auto order : module.getOps<UnitOrderOp>()) {
    for (Attribute unit : order.getUnits())
      tables.unitOrders.push_back(unitRows.lookup(unit));
    tables.prefetches.push_back(order.getPrefetch());
  }
  for (auto table : program.getOps<zrt::BucketTableOp>()) {
    auto bucket = zrt::lookup<BucketOp>(symbols, table, table.getBucketAttr());
    auto unit = unitRows.find(bucket.getUnitAttr());
    tables.bucketUnits.push_back(
        {unit == unitRows.end() ? -1 : unit->second,
         table.getUnshardedAttr() ? tables.getBuffer(table.getUnshardedAttr())
                                  : -1});
  }
}

void TableReader::addFrozen() {
  auto module = program->getParentOfType<ModuleOp>();
  llvm::DenseMap<Attribute, int64_t> unitRows;
  for (auto op : program.getOps<zrt::UnitTableOp>())
    unitRows[op.getUnitAttr()] = unitRows.size();
  llvm::DenseMap<Attribute, zrt::FrozenTableOp> tableOf;
  for (auto table : program.getOps<zrt::FrozenTableOp>())
    tableOf[table.getBucketAttr()] = table;
  // In order of declaration, as other parameters: callers number them, alike on
  // all pipeline stages.
  llvm::DenseMap<Attribute, zero_rt_frozen_row> rows;
  for (auto bucket : module.getOps<FrozenBucketOp>()) {
    if (!bucket.isSharded())
      continue;
    zrt::FrozenTableOp table = tableOf.lookup(FlatSymbolRefAttr::get(bucket));
    zero_rt_frozen_row row = {};
    row.dtype = getDtype(bucket.getValueType().getElementType());
    row.unit = unitRows.lookup(bucket.getUnitAttr());
    row.parameter_buffer =
        table ? tables.getBuffer(table.getParametersAttr()) : -1;
    row.unsharded_buffer =
        table ? tables.getBuffer(table.getUnshardedAttr()) : -1;
    for (auto [member, offset] :
         llvm::zip_equal(bucket.getMembers().getAsRange<FlatSymbolRefAttr>(),
                         bucket.getOffsets())) {
      row.name = tables.strings.add(member.getValue());
      row.elements =
          getNumHeld(bucket, module.lookupSymbol<ParameterOp>(member));
      row.offset = table ? offset : 0;
      rows[member] = row;
    }
  }
  for (auto op : module.getOps<ParameterOp>())
    if (auto it = rows.find(FlatSymbolRefAttr::get(op)); it != rows.end())
      tables.frozen.push_back(it->second);
}

FailureOr<Tables> TableReader::build() {
  auto module = program->getParentOfType<ModuleOp>();
  auto mesh = zrt::lookup<MeshOp>(symbols, program, program.getMeshAttr());
  if (!mesh)
    return program.emitError() << "mesh " << program.getMeshAttr()
                               << " is not a zero.mesh of this module";
  tables.name = program.getSymName().str();
  tables.ranks = mesh.getNumRanks();
  if (whole)
    tables.planHash = whole->planHash;
  for (auto [i, op] : llvm::enumerate(program.getOps<zrt::KernelOp>()))
    tables.kernelRows[FlatSymbolRefAttr::get(op)] = i;
  for (auto [i, op] : llvm::enumerate(program.getOps<zrt::ScalarsOp>()))
    tables.scalarsRows[FlatSymbolRefAttr::get(op)] = i;
  for (auto [i, op] : llvm::enumerate(program.getOps<zrt::HandlerOp>()))
    tables.handlerRows[FlatSymbolRefAttr::get(op)] = i;
  addMesh(mesh);
  bool isTied = llvm::any_of(tables.axisSetStages, [](int64_t s) { return s; });
  if (isTied && tables.getNumStages() > kMaxTiedStages)
    return program.emitError()
           << "has " << tables.getNumStages() << " pipeline stages, at most "
           << kMaxTiedStages << " where parameters are on several of them";
  addSlots();
  addEvents();
  addBuffers();
  addSegments();
  if (failed(addBuckets(mesh)))
    return failure();
  addInputSets();
  addStates();
  addAccumulators(mesh);
  addUnits();
  addFrozen();
  addProtocol();
  addActivations(module, tables);
  if (std::optional<StringRef> cut = tables.strings.findCut())
    return program.emitError()
           << "step @" << program.getSymName()
           << " has a name with a byte of 0, which would be read as '" << *cut
           << "'; give another name";
  return std::move(tables);
}

uint64_t zero::hashPlan(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  // Passes have verified it. To print it for a person verifies it once more.
  module.print(os, OpPrintingFlags().assumeVerified());
  return llvm::xxh3_64bits(text);
}

FailureOr<Tables> zero::buildTables(zrt::ProgramOp program,
                                    const Tables *whole) {
  return TableReader(program, whole).build();
}
