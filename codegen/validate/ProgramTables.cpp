//===- ProgramTables.cpp - A scheduled program in lines of text -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/validate/ProgramTables.h"

#include "codegen/host/InputFlow.h"
#include "codegen/validate/ProgramCalls.h"
#include "zero_rt/cuda_code.h"
#include "zero_rt/library.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace zero;

namespace {
class TableReader {
public:
  TableReader(zrt::ProgramOp program, const ExpectedLibrary &expected)
      : program(program), module(program->getParentOfType<ModuleOp>()),
        mesh(module.lookupSymbol<MeshOp>(program.getMeshAttr())),
        expected(expected), calls(program, expected.stageAxes) {}

  std::vector<std::string> read();

private:
  void add(const std::string &row, const Fields &fields) {
    lines.push_back(rowText(row, fields));
  }
  void addPlan();
  void addParameters();
  void addBucket(zrt::BucketTableOp table);
  void addShapes();
  void addUnits();
  void addFrozen();
  void addBuffers();
  void addScalars();
  void addAccumulators();
  void addActivations();
  void addProtocol();
  void addHandlers();
  bool leavesScratch(zrt::SequenceOp sequence);

  template <typename OpT> int64_t count() {
    return llvm::range_size(program.getOps<OpT>());
  }

  zrt::ProgramOp program;
  ModuleOp module;
  MeshOp mesh;
  const ExpectedLibrary &expected;
  ProgramCalls calls;
  SymbolTableCollection symbols;
  std::vector<std::string> lines;
};
} // namespace

static std::string bits(double value) {
  return number(llvm::bit_cast<int64_t>(value));
}

static std::string nameOrNone(FlatSymbolRefAttr symbol) {
  return symbol ? symbol.getValue().str() : "none";
}

static std::string typeText(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

void TableReader::addPlan() {
  add("step " + program.getSymName().str(),
      {{"ABI", number(ZERO_RT_ABI_VERSION)},
       {"bytes", number(sizeof(zero_rt_library))},
       {"ranks", number(mesh.getNumRanks())},
       {"CPU", expected.cpuFeatures},
       {"kernels", number(count<zrt::KernelOp>())},
       {"scalar programs", number(count<zrt::ScalarsOp>())},
       {"handlers", number(count<zrt::HandlerOp>())},
       {"executables", expected.hasGpuCode ? ZERO_RT_CUDA_TARGET : ""}});
  for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>())
    add("axis " + axis.getName().str(), {{"size", number(axis.getSize())}});
}

/// In the order of their declaration: their numbers are the caller's.
void TableReader::addParameters() {
  llvm::DenseMap<Attribute, std::pair<BucketOp, size_t>> places;
  for (auto table : program.getOps<zrt::BucketTableOp>()) {
    auto bucket = zrt::lookup<BucketOp>(symbols, table, table.getBucketAttr());
    for (auto [i, member] : llvm::enumerate(bucket.getMembers()))
      places[member] = {bucket, i};
  }
  for (auto op : module.getOps<ParameterOp>()) {
    if (op.getFrozen())
      continue;
    auto [bucket, i] = places.lookup(FlatSymbolRefAttr::get(op));
    Fields fields = {{"dtype", typeText(op.getDtype())},
                     {"bucket", bucket ? bucket.getSymName().str() : "none"},
                     {"optional", number(op.getOptional())},
                     {"uses", number(op.getUses())}};
    if (bucket) {
      fields.emplace_back("gradients", typeText(bucket.getArrivalType()));
      fields.emplace_back("elements",
                          number(mesh.getNumHeld(op.getValueType())));
      fields.emplace_back("offset", number(bucket.getOffsets()[i]));
      fields.emplace_back("extent", number(bucket.getExtents()[i]));
    }
    add("parameter " + op.getSymName().str(), fields);
  }
}

void TableReader::addBucket(zrt::BucketTableOp table) {
  auto bucket = zrt::lookup<BucketOp>(symbols, table, table.getBucketAttr());
  auto gradients =
      zrt::lookup<zrt::BufferOp>(symbols, table, table.getGradientAttr());
  ValueType type = bucket.getValueType();
  SmallVector<StringAttr> rows, replicated;
  for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>()) {
    StringAttr name = axis.getName();
    bool isOfStages = !type.getCoordinates(name).empty();
    if (isOfStages || type.getPlacement(name).kind == PlacementKind::Sharded)
      rows.push_back(name);
    if (!isOfStages && gradients.getValueType().getPlacement(name).kind ==
                           PlacementKind::Replicated)
      replicated.push_back(name);
  }
  add("bucket " + bucket.getSymName().str(),
      {{"elements", number(bucket.getRowLength())},
       {"gradients", nameOrNone(table.getGradientAttr())},
       {"parameters", nameOrNone(table.getParametersAttr())},
       {"master", nameOrNone(table.getMasterAttr())},
       {"staging", nameOrNone(table.getStagingAttr())},
       {"store kernel", number(calls.getPlace(table.getStoreAttr()))},
       {"add kernel", number(calls.getPlace(table.getAddAttr()))},
       {"rows over", calls.axes(rows)},
       {"replicated over", calls.axes(replicated)},
       {"writable after", calls.events(table.getWritableAttr())},
       {"readable after", table.getReadableAttr()
                              ? calls.events(table.getReadableAttr())
                              : "its stream"}});
}

void TableReader::addShapes() {
  bool hasDimensions = false;
  std::vector<std::pair<std::string, std::string>> shapes;
  for (auto op : module.getOps<ParameterOp>()) {
    if (op.getFrozen())
      continue;
    ValueType type = op.getValueType();
    std::string shape;
    for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
      SmallVector<StringAttr> axes = type.getAxesOfDim(dim);
      shape += (shape.empty() ? "" : " x ") +
               number(extent / mesh.getNumRanks(axes)) + " over " +
               calls.axes(axes);
      hasDimensions = true;
    }
    shapes.push_back({"parameter " + op.getSymName().str(), shape});
  }
  for (auto &[name, shape] : shapes)
    if (hasDimensions)
      add(name, {{"shape", shape}});
}

void TableReader::addUnits() {
  llvm::DenseSet<Attribute> units;
  for (auto op : program.getOps<zrt::UnitTableOp>()) {
    units.insert(op.getUnitAttr());
    auto place = [&](FlatSymbolRefAttr handler) {
      return number(handler ? calls.getPlace(handler) : -1);
    };
    add("unit " + op.getUnit().str(),
        {{"unshard by", place(op.getUnshardAttr())},
         {"reshard by", place(op.getReshardAttr())}});
  }
  if (units.empty())
    return;
  for (auto order : module.getOps<UnitOrderOp>())
    add("unit order",
        {{"units",
          llvm::join(llvm::map_range(
                         order.getUnits().getAsValueRange<FlatSymbolRefAttr>(),
                         [](StringRef name) { return name.str(); }),
                     ", ")},
         {"ahead", number(order.getPrefetch())}});
  for (auto table : program.getOps<zrt::BucketTableOp>()) {
    auto bucket = zrt::lookup<BucketOp>(symbols, table, table.getBucketAttr());
    bool isOfUnit = units.contains(bucket.getUnitAttr());
    add("bucket " + bucket.getSymName().str(),
        {{"unit", isOfUnit ? bucket.getUnit()->str() : "none"},
         {"unsharded in", nameOrNone(table.getUnshardedAttr())}});
  }
}

void TableReader::addFrozen() {
  llvm::DenseMap<Attribute, zrt::FrozenTableOp> tables;
  for (auto table : program.getOps<zrt::FrozenTableOp>())
    tables[table.getBucketAttr()] = table;
  llvm::DenseMap<Attribute, Fields> fieldsOf; // by parameter
  for (auto bucket : module.getOps<FrozenBucketOp>()) {
    if (!bucket.isSharded())
      continue;
    // On another pipeline stage there is no table.
    zrt::FrozenTableOp table = tables.lookup(FlatSymbolRefAttr::get(bucket));
    for (auto [member, offset] :
         llvm::zip_equal(bucket.getMembers(), bucket.getOffsets()))
      fieldsOf[member] = {
          {"unit", bucket.getUnit().str()},
          {"parameters",
           table ? nameOrNone(table.getParametersAttr()) : "none"},
          {"unsharded in",
           table ? nameOrNone(table.getUnshardedAttr()) : "none"},
          {"offset", number(table ? offset : 0)}};
  }
  for (auto op : module.getOps<ParameterOp>()) {
    auto it = fieldsOf.find(FlatSymbolRefAttr::get(op));
    if (it == fieldsOf.end())
      continue;
    Fields fields = {{"dtype", typeText(op.getDtype())},
                     {"elements", number(mesh.getNumHeld(op.getValueType()))}};
    llvm::append_range(fields, it->second);
    add("frozen parameter " + op.getSymName().str(), fields);
  }
}

void TableReader::addBuffers() {
  for (auto op : program.getOps<zrt::BufferOp>())
    add("buffer " + op.getSymName().str(),
        {{"role", number(int64_t(op.getRole()))},
         {"space", number(int64_t(op.getSpace()))},
         {"dtype", typeText(op.getValueType().getElementType())},
         {"elements", number(op.getRowLength())},
         {"over", calls.axes(op.getOwners())},
         {"on demand", number(op.getOnDemand())},
         {"fill", bits(op.getFill().convertToDouble())},
         {"shares", nameOrNone(op.getSharesAttr())}});
}

/// The factor |prescaled|, with axes in place of their sizes.
static std::string describePrescaled(ScaleAttr prescaled, MeshOp mesh) {
  // 8 powers of all ranks have 128 bits.
  llvm::APInt most(256, uint64_t(1) << 62), parts[2] = {{256, 1}, {256, 1}};
  int64_t passes = 0, tokens = 0;
  for (const ScaleFactor &factor : prescaled.getFactors()) {
    StringRef symbol = factor.symbol.getValue();
    passes += symbol == kAccumulation ? factor.exponent : 0;
    tokens += symbol == kTokens ? factor.exponent : 0;
    auto axes = mesh.findAxes(factor.symbol);
    for (int64_t i = 0; axes && i < std::abs(factor.exponent); ++i)
      parts[factor.exponent < 0] *= mesh.getNumRanks(*axes);
  }
  if (parts[0].uge(most) || parts[1].uge(most))
    parts[0] = parts[1] = 0;
  return number(parts[0].getSExtValue()) + " / " +
         number(parts[1].getSExtValue()) + ", passes^" + number(passes) +
         ", tokens^" + number(tokens);
}

void TableReader::addAccumulators() {
  auto getPartial = [&](FlatSymbolRefAttr symbol) {
    auto buffer = zrt::lookup<zrt::BufferOp>(symbols, program, symbol);
    return calls.axes(buffer.getValueType().getAxes(PlacementKind::Partial));
  };
  llvm::DenseMap<Attribute, zrt::AccumulatorOp> accumulators; // by bucket
  for (auto op : program.getOps<zrt::AccumulatorOp>())
    accumulators[op.getBucketAttr()] = op;
  for (auto table : program.getOps<zrt::BucketTableOp>())
    if (zrt::AccumulatorOp op = accumulators.lookup(table.getBucketAttr()))
      add("accumulator of " + op.getBucket().str(),
          {{"in", nameOrNone(op.getBufferAttr())},
           {"addends over", getPartial(op.getBufferAttr())},
           {"gradients over", getPartial(table.getGradientAttr())},
           {"prescaled by", describePrescaled(op.getPrescaledAttr(), mesh)}});
  ArrayAttr batches = program.getBatchesAttr();
  add("batches",
      {{"on ranks", number(batches ? mesh.getNumRanks(llvm::to_vector(
                                         batches.getAsRange<StringAttr>()))
                                   : 0)}});
}

void TableReader::addScalars() {
  for (auto op : program.getOps<zrt::StateOp>())
    add("state " + op.getRole().str(),
        {{"bucket", nameOrNone(op.getBucketAttr())},
         {"in", nameOrNone(op.getBufferAttr())}});
  for (auto op : program.getOps<zrt::ScalarStateOp>())
    add("state " + op.getRole().str(),
        {{"bucket", "none"},
         {"in", slotText(op.getSlots().str(), op.getIndex())}});
  std::string lossScale = "none";
  for (auto op : program.getOps<zrt::SlotsOp>()) {
    for (auto [i, value] : llvm::enumerate(op.getInitial()))
      add("slot " + slotText(op.getSymName().str(), i),
          {{"initial", bits(value)}});
    if (op.isLossScale())
      lossScale = slotText(op.getSymName().str(), 0);
  }
  for (auto [op, check] :
       llvm::zip_equal(program.getInputSlots(), expected.inputChecks))
    add("input " + slotText(op.getSymName().str(), 0),
        {{"over", op.getOver() ? calls.axes(*op.getOver()) : "none"},
         {"tokens", number(op.isTokens())},
         {"check", number(check)},
         {"hyper", op.getHyper().value_or("").str()},
         {"name", op.getInputName().value_or("").str()}});
  InputFlow flow = findInputFlow(program);
  for (auto op : program->getParentOfType<ModuleOp>().getOps<ParameterOp>()) {
    std::string inputs;
    if (int64_t set = flow.setOf.lookup(op.getSymNameAttr()))
      for (unsigned i : flow.sets[set].set_bits())
        inputs += number(i) + " ";
    if (!op.getFrozen() && !program.getInputs().empty())
      add("update of " + op.getSymName().str(), {{"inputs", inputs}});
  }
  for (auto [name, result] :
       llvm::zip_equal(program.getResultNames().getAsRange<StringAttr>(),
                       program.getResults().getAsRange<FlatSymbolRefAttr>()))
    add("result " + name.str() + " " + slotText(nameOrNone(result), 0), {});
  add("loss scale", {{"slot", lossScale}});
}

void TableReader::addActivations() {
  constexpr size_t kMostDims =
      sizeof(zero_rt_activation_row::dims) / sizeof(int64_t);
  for (auto op : module.getOps<ActivationOp>()) {
    RankedTensorType type = op.getTensorType();
    std::string dims;
    for (size_t d = 0; d < kMostDims; ++d)
      dims += (d >= size_t(type.getRank()) ? "0"
               : type.isDynamicDim(d)      ? "-1"
                                           : number(type.getDimSize(d))) +
              " ";
    add("activation " + op.getSymName().str(),
        {{"dtype", typeText(type.getElementType())},
         {"over", op.getAxis().str()},
         {"from", number(op.getFrom())},
         {"to", number(op.getTo())},
         {"dimensions", number(type.getRank())},
         {"extents", dims}});
  }
}

/// Whether gradients of a bucket are read only by the handler that closes it.
bool TableReader::leavesScratch(zrt::SequenceOp sequence) {
  llvm::DenseSet<StringAttr> gradients;
  llvm::DenseSet<Attribute> closing;
  for (auto bucket : sequence.getBuckets().getAsRange<FlatSymbolRefAttr>())
    gradients.insert(calls.getSymbols().getMemory(
        calls.getSymbols().getTable(bucket).getGradientAttr()));
  for (auto op : program.getOps<zrt::SequenceOp>())
    closing.insert(op.getHandlers().begin(), op.getHandlers().end());
  for (auto handler : program.getOps<zrt::HandlerOp>()) {
    if (closing.contains(FlatSymbolRefAttr::get(handler)))
      continue;
    for (auto call : handler.getBody().getOps<zrt::RuntimeCall>())
      for (const zrt::MemoryUse &use :
           calls.getSymbols().getUses(call, /*arriving=*/{}))
        if (gradients.contains(use.memory))
          return false;
  }
  return true;
}

void TableReader::addProtocol() {
  for (auto op : program.getOps<zrt::EventOp>())
    add("event " + calls.event(FlatSymbolRefAttr::get(op)), {});
  for (auto [i, op] : llvm::enumerate(program.getOps<zrt::SequenceOp>())) {
    std::string entries;
    for (auto [bucket, handler] :
         llvm::zip_equal(op.getBuckets().getAsRange<FlatSymbolRefAttr>(),
                         op.getHandlers().getAsRange<FlatSymbolRefAttr>()))
      entries +=
          nameOrNone(bucket) + " by " + number(calls.getPlace(handler)) + " ";
    add("sequence " + number(i),
        {{"buckets", entries}, {"scratch", number(leavesScratch(op))}});
  }
  auto transitions = program.getOps<zrt::TransitionOp>();
  add("initial state", {{"is", (*transitions.begin()).getState().str()}});
  for (auto op : transitions) {
    std::string handlers;
    for (auto handler : op.getHandlers().getAsRange<FlatSymbolRefAttr>())
      handlers += number(calls.getPlace(handler)) + " ";
    add("transition from " + op.getState().str(),
        {{"event", number(int64_t(op.getEvent()))},
         {"to", op.getNext().str()},
         {"handlers", handlers},
         {"sequence",
          number(op.getSequenceAttr() ? calls.getPlace(op.getSequenceAttr())
                                      : -1)}});
  }
}

void TableReader::addHandlers() {
  for (auto [i, handler] : llvm::enumerate(program.getOps<zrt::HandlerOp>())) {
    std::string row = "handler " + number(i);
    int64_t size = 0;
    for (auto call : handler.getBody().getOps<zrt::RuntimeCall>()) {
      lines.push_back(row + ": " + calls.getText(call));
      ++size;
    }
    add(row, {{"ends with status", number(ZERO_RT_OK)}});
    for (int64_t failing : {int64_t(0), size / 2, size - 1})
      if (failing >= 0 && failing < size)
        add(row, {{"where a call fails, makes", number(failing + 1) +
                                                    " calls and status " +
                                                    number(ZERO_RT_TIMEOUT)}});
  }
}

std::vector<std::string> TableReader::read() {
  addPlan();
  addParameters();
  for (auto table : program.getOps<zrt::BucketTableOp>())
    addBucket(table);
  if (expected.hasShapes)
    addShapes();
  addUnits();
  addFrozen();
  addBuffers();
  addScalars();
  addAccumulators();
  addActivations();
  addProtocol();
  addHandlers();
  return std::move(lines);
}

std::vector<std::string>
zero::describeProgram(zrt::ProgramOp program, const ExpectedLibrary &expected) {
  return TableReader(program, expected).read();
}
