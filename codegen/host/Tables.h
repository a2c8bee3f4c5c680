//===- Tables.h - A scheduled program as rows of numbers --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The constant tables of zero_rt/library.h, before they are code. They are read
// from the IR once, and the library, the header and the plan are written from
// them.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_HOST_TABLES_H
#define ZERO_CODEGEN_HOST_TABLES_H

#include "codegen/host/AbiNumbers.h"
#include "dialect/zrt/CallDescription.h"
#include "zero_rt/library.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace zero {

/// Zero-terminated strings in one blob, each stored once.
class StringBlob {
public:
  int64_t add(llvm::StringRef text);
  llvm::StringRef getBytes() const { return bytes; }
  /// What a reader would take for a string that has a zero within it.
  std::optional<llvm::StringRef> findCut() const;

private:
  std::string bytes;
  llvm::StringMap<int64_t> offsets;
};

/// The pipeline stages that take part in a reduction are bits of a number.
constexpr int64_t kMaxTiedStages = 62;

struct Tables {
  std::string name;
  uint64_t planHash = 0; // see hashPlan
  int64_t ranks = 1;
  StringBlob strings;
  std::vector<zero_rt_axis_row> axes;
  std::vector<int64_t> axisSets;
  /// The pipeline stages that take part, a bit per stage; 0: all.
  std::vector<int64_t> axisSetStages;
  /// The axes that have pipeline stages, in the order of the mesh.
  llvm::SmallVector<mlir::StringAttr> stageAxes;
  std::vector<zero_rt_parameter_row> parameters;
  std::vector<zero_rt_bucket_row> buckets;
  std::vector<zero_rt_buffer_row> buffers;
  std::vector<zero_rt_unit_row> units;
  std::vector<zero_rt_dimension_row> dimensions;    // of parameters, in order
  std::vector<int64_t> dimensionEnds;               // by parameter
  std::vector<zero_rt_bucket_unit_row> bucketUnits; // as buckets, or empty
  std::vector<zero_rt_frozen_row> frozen;
  std::vector<zero_rt_accumulator_row> accumulators; // as buckets, or empty
  int64_t batchRanks = 0; // that have batches of their own; 0: not known
  std::vector<int64_t> unitOrders; // as many numbers as units for each
  std::vector<int64_t> prefetches; // as many as orders
  std::vector<zero_rt_segment_row> segments;
  std::vector<zero_rt_table_row> tables;
  std::vector<zero_rt_state_row> states;
  std::vector<zero_rt_slot_row> slots;
  int64_t lossScale = -1; // its scalar slot
  std::vector<zero_rt_input_row> inputs;
  std::vector<int64_t> inputNames;
  int64_t numInputSets = 0;
  std::vector<int64_t> inputSets;       // as many words for each
  std::vector<int64_t> parameterInputs; // rows of inputSets, by parameter
  std::vector<zero_rt_result_row> results;
  std::vector<std::string> resultNames;
  std::vector<int64_t> protocolStates;
  std::vector<zero_rt_transition_row> transitions;
  std::vector<zero_rt_sequence_row> sequences;
  std::vector<zero_rt_sequence_entry> sequenceEntries;
  std::vector<int64_t> transitionHandlers;
  std::vector<zero_rt_activation_row> activations;
  std::vector<zero_rt_stream_event_row> streamEvents;
  std::vector<int64_t> eventLists;
  std::vector<std::string> parameterNames;
  std::vector<std::string> activationNames;

  /// The rows of symbols of the program.
  int64_t getBuffer(mlir::FlatSymbolRefAttr symbol) const;
  int64_t getBucket(mlir::FlatSymbolRefAttr symbol) const;
  int64_t getParameter(mlir::FlatSymbolRefAttr symbol) const;
  int64_t getKernel(mlir::FlatSymbolRefAttr symbol) const;
  int64_t getScalars(mlir::FlatSymbolRefAttr symbol) const;
  int64_t getTable(mlir::FlatSymbolRefAttr symbol) const;
  int64_t getEvent(mlir::FlatSymbolRefAttr symbol) const;
  int64_t getHandler(mlir::FlatSymbolRefAttr symbol) const;
  /// The inputs in row |set| of inputSets.
  std::vector<int64_t> getInputs(int64_t set) const;
  /// The first scalar slot of a zrt.slots.
  int64_t getSlot(mlir::FlatSymbolRefAttr symbol) const;

  /// A set of axes as bits, and the row of a set in axisSets.
  int64_t getSet(llvm::ArrayRef<mlir::StringAttr> names) const;
  int64_t getAxes(mlir::ArrayAttr names) const;
  /// The same for a reduction of a value of |type|, which may be on several
  /// pipeline stages.
  int64_t getAxes(mlir::ArrayAttr names, ValueType type) const;
  /// The same for an argument of |call|; -1 if it has no axes.
  int64_t getAxes(const zrt::CallArgument &axes, mlir::Operation *call,
                  mlir::SymbolTableCollection &symbols) const;
  /// The pipeline stages over |names| that have a value of |type|, a bit per
  /// stage; 0: all.
  int64_t getStages(llvm::ArrayRef<mlir::StringAttr> names,
                    ValueType type) const;
  /// The row of a set of axes and pipeline stages; -1 if there is none.
  int64_t findAxes(int64_t set, int64_t stages) const;
  /// The product of the sizes of the axes that have pipeline stages.
  int64_t getNumStages() const;
  /// The number of ranks that differ over the set in row |axes|.
  int64_t getNumRanks(int64_t axes) const;

  /// The number of elements of a buffer that a rank holds.
  int64_t getHeldElements(const zero_rt_buffer_row &buffer) const {
    return buffer.elements / getNumRanks(buffer.owners);
  }

  llvm::DenseMap<mlir::StringAttr, int64_t> axisRows;
  llvm::DenseMap<mlir::Attribute, int64_t> bufferRows;
  llvm::DenseMap<mlir::Attribute, int64_t> bucketRows;
  llvm::DenseMap<mlir::Attribute, int64_t> parameterRows;
  llvm::DenseMap<mlir::Attribute, int64_t> kernelRows;
  llvm::DenseMap<mlir::Attribute, int64_t> scalarsRows;
  llvm::DenseMap<mlir::Attribute, int64_t> handlerRows;
  llvm::DenseMap<mlir::Attribute, int64_t> tableRows;
  llvm::DenseMap<mlir::Attribute, int64_t> slotRows;
  llvm::DenseMap<mlir::Attribute, int64_t> eventRows;
};

/// The hash of all that the IR of |module| says, which tells plans apart. It
/// prints |module|, which takes longer than to build the tables.
uint64_t hashPlan(mlir::ModuleOp module);

/// Reads |program|, without its hash. Emits a diagnostic if it is incomplete.
/// If |program| is that of one pipeline stage, |whole| are the tables of the
/// program of all ranks.
mlir::FailureOr<Tables> buildTables(zrt::ProgramOp program,
                                    const Tables *whole = nullptr);

} // namespace zero

#endif // ZERO_CODEGEN_HOST_TABLES_H
