//===- EmitLibrary.cpp - Tables and handlers as LLVM IR -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/host/EmitLibrary.h"

#include "codegen/host/CallRunner.h"
#include "codegen/host/CudaTables.h"
#include "codegen/host/GlobalBuilder.h"
#include "codegen/host/HandlerCalls.h"

using namespace mlir;
using namespace zero;

/// The flat constant of a table whose rows are structs of int64_t.
template <typename Row>
static Constant emitRows(GlobalBuilder &globals, StringRef name,
                         const std::vector<Row> &rows) {
  static_assert(sizeof(Row) % sizeof(int64_t) == 0);
  auto *words = reinterpret_cast<const int64_t *>(rows.data());
  return globals.words(
      name, ArrayRef(words, rows.size() * sizeof(Row) / sizeof(int64_t)));
}

/// The fields of zero_rt_library for one pipeline stage, in the order of the
/// struct.
static SmallVector<Constant> getStageFields(const StageProgram &stage,
                                            const LibraryOptions &options,
                                            GlobalBuilder &globals) {
  const Tables &tables = stage.tables;
  zrt::ProgramOp program = stage.program;
  SmallVector<Constant> fields{
      globals.integer(32, sizeof(zero_rt_library)),
      globals.integer(32, ZERO_RT_ABI_VERSION),
      globals.integer(64, tables.planHash),
      globals.integer(64, tables.ranks),
      globals.string("cpu_features", options.cpuFeatures),
      globals.string("name", tables.name),
      globals.bytes("strings", tables.strings.getBytes())};
  auto addTable = [&](StringRef name, const auto &rows) {
    fields.push_back(globals.integer(64, rows.size()));
    fields.push_back(emitRows(globals, name, rows));
  };
  addTable("axes", tables.axes);
  addTable("axis_sets", tables.axisSets);
  fields.push_back(emitRows(globals, "axis_set_stages", tables.axisSetStages));
  addTable("parameters", tables.parameters);
  addTable("buckets", tables.buckets);
  addTable("buffers", tables.buffers);
  addTable("segments", tables.segments);
  addTable("tables", tables.tables);
  addTable("states", tables.states);
  addTable("slots", tables.slots);
  addTable("inputs", tables.inputs);
  addTable("results", tables.results);
  fields.push_back(globals.integer(64, tables.lossScale));

  SmallVector<std::string> kernels;
  for (auto kernel : program.getOps<zrt::KernelOp>())
    kernels.push_back(kernel.getSymName().str());
  SmallVector<std::string> programs;
  for (auto scalars : program.getOps<zrt::ScalarsOp>())
    programs.push_back(scalars.getSymName().str());
  fields.push_back(globals.integer(64, kernels.size()));
  fields.push_back(globals.pointers("kernels", kernels));
  fields.push_back(globals.integer(64, programs.size()));
  fields.push_back(globals.pointers("scalar_programs", programs));
  auto handlers = program.getOps<zrt::HandlerOp>();
  fields.push_back(
      globals.integer(64, std::distance(handlers.begin(), handlers.end())));
  fields.push_back({}); // they are no functions, see addHandlerCalls

  addTable("protocol_states", tables.protocolStates);
  addTable("transitions", tables.transitions);
  fields.push_back(
      emitRows(globals, "transition_handlers", tables.transitionHandlers));
  addTable("sequences", tables.sequences);
  addTable("sequence_entries", tables.sequenceEntries);
  addTable("activations", tables.activations);
  addTable("stream_events", tables.streamEvents);
  addTable("event_lists", tables.eventLists);
  return fields;
}

/// Adds the fields of the executables: |executable|, or none if it is null.
static void addExecutables(Constant executable, GlobalBuilder &globals,
                           SmallVectorImpl<Constant> &fields) {
  fields.push_back({}); // of version 15
  fields.push_back(globals.integer(64, executable.symbol.empty() ? 0 : 1));
  fields.push_back(executable);
}

static void addUnits(const Tables &tables, GlobalBuilder &globals,
                     SmallVectorImpl<Constant> &fields) {
  fields.push_back(globals.integer(64, tables.units.size()));
  fields.push_back(emitRows(globals, "units", tables.units));
  fields.push_back(emitRows(globals, "bucket_units", tables.bucketUnits));
  fields.push_back(globals.integer(64, tables.frozen.size()));
  fields.push_back(emitRows(globals, "frozen", tables.frozen));
  fields.push_back(globals.integer(64, tables.prefetches.size()));
  fields.push_back(emitRows(globals, "unit_orders", tables.unitOrders));
  fields.push_back(emitRows(globals, "unit_prefetches", tables.prefetches));
}

/// Adds the shapes of parameters, which the library of the first stage has.
static void addDimensions(const Tables &tables, GlobalBuilder &globals,
                          SmallVectorImpl<Constant> &fields) {
  fields.push_back(globals.integer(64, tables.dimensions.size()));
  fields.push_back(emitRows(globals, "dimensions", tables.dimensions));
  fields.push_back(emitRows(globals, "dimension_ends", tables.dimensionEnds));
}

/// Adds what a checkpoint within a step needs.
static void addAccumulators(const Tables &tables, GlobalBuilder &globals,
                            SmallVectorImpl<Constant> &fields) {
  fields.push_back(emitRows(globals, "accumulators", tables.accumulators));
  fields.push_back(globals.integer(64, tables.batchRanks));
}

/// Adds the calls of handlers, which |makeCalls| makes.
static void addHandlerCalls(const StageProgram &stage,
                            const Constant &makeCalls, GlobalBuilder &globals,
                            SmallVectorImpl<Constant> &fields) {
  HandlerCalls calls = buildHandlerCalls(stage.program, stage.tables);
  fields.push_back(makeCalls);
  fields.push_back(emitRows(globals, "handler_calls", calls.rows));
  fields.push_back(globals.integer(64, calls.words.size()));
  fields.push_back(globals.words("call_words", calls.words));
  fields.push_back(globals.indices("call_lists", calls.lists));
}

/// Adds what callers are told of inputs.
static void addInputs(const Tables &tables, GlobalBuilder &globals,
                      SmallVectorImpl<Constant> &fields) {
  fields.push_back(emitRows(globals, "input_names", tables.inputNames));
  fields.push_back(globals.integer(64, tables.numInputSets));
  fields.push_back(emitRows(globals, "input_sets", tables.inputSets));
  fields.push_back(
      emitRows(globals, "parameter_inputs", tables.parameterInputs));
}

/// Emits the symbol by which zero_rt_open finds |library|.
static void emitLibraryPointer(GlobalBuilder &globals, StringRef library) {
  OpBuilder &builder = globals.getBuilder();
  Location loc = globals.getLoc();
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  OpBuilder::InsertionGuard guard(builder);
  auto global = builder.create<LLVM::GlobalOp>(
      loc, pointer, /*isConstant=*/true, LLVM::Linkage::External,
      ZERO_RT_LIBRARY_SYMBOL, Attribute());
  builder.setInsertionPointToEnd(&global.getInitializerRegion().emplaceBlock());
  builder.create<LLVM::ReturnOp>(
      loc, builder.create<LLVM::AddressOfOp>(loc, pointer, library));
}

void zero::emitLibrary(ArrayRef<StageProgram> stages,
                       const LibraryOptions &options, ModuleOp target) {
  GlobalBuilder globals(target);
  Constant makeCalls = emitCallRunner(globals);
  CudaTables cuda(globals, options.cuda);
  std::string symbol = globals.getSymbol("library");
  std::vector<std::string> libraries{symbol};
  SmallVector<Constant> first;
  Constant firstCuda;
  for (auto [i, stage] : llvm::enumerate(stages)) {
    if (stages.size() > 1)
      globals.setPrefix("stage" + Twine(i) + ".");
    zrt::ProgramOp program = stage.program;
    SmallVector<Constant> fields = getStageFields(stage, options, globals);
    Constant code = cuda.emit(program);
    if (i == 0) {
      first = std::move(fields);
      firstCuda = code;
      continue;
    }
    // The library of a stage lists no stages.
    for (int field = 0; field < 2; ++field)
      fields.push_back(globals.integer(64, 0));
    fields.push_back({});
    addExecutables(code, globals, fields);
    addUnits(stage.tables, globals, fields);
    fields.append({globals.integer(64, 0), {}, {}}); // no shapes
    addAccumulators(stage.tables, globals, fields);
    addHandlerCalls(stage, makeCalls, globals, fields);
    addInputs(stage.tables, globals, fields);
    libraries.push_back(globals.structure("library", fields).symbol);
  }
  // The library of the first stage lists the others.
  SmallVector<StringAttr> axes;
  for (const AxisCoordinate &c : stages.front().coordinates)
    axes.push_back(c.axis);
  bool isSplit = stages.size() > 1;
  first.push_back(
      globals.integer(64, isSplit ? stages.front().tables.getSet(axes) : 0));
  first.push_back(globals.integer(64, isSplit ? stages.size() : 0));
  first.push_back(isSplit ? globals.pointers("stages", libraries) : Constant());
  addExecutables(firstCuda, globals, first);
  globals.setPrefix(isSplit ? "stage0." : "");
  addUnits(stages.front().tables, globals, first);
  addDimensions(stages.front().tables, globals, first);
  addAccumulators(stages.front().tables, globals, first);
  addHandlerCalls(stages.front(), makeCalls, globals, first);
  addInputs(stages.front().tables, globals, first);
  globals.setPrefix("");
  globals.structure("library", first);
  emitLibraryPointer(globals, symbol);
}
