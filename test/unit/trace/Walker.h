//===- Walker.h - The calls that the IR says a step makes -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_TRACE_WALKER_H
#define ZERO_TEST_UNIT_TRACE_WALKER_H

#include "Trace.h"

#include "codegen/validate/ProgramCalls.h"
#include "dialect/zrt/ZrtDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace zero::test {

/// Follows a zrt.program through events as the descriptions of zrt.transition
/// and zrt.sequence say, and writes down the calls of the handlers that run. It
/// knows nothing of code generation, its tables, or the runtime.
class Walker {
public:
  explicit Walker(mlir::ModuleOp module);

  /// |name|: the parameter that arrives, or the unit that the event is of.
  void walk(zrt::Event event, llvm::StringRef name = "");
  void addStepCall(const std::string &call) { trace.push_back(call); }

  Trace trace;
  /// The handlers that ran.
  llvm::StringMap<int> handlers;

private:
  zrt::TransitionOp find(zrt::Event event);
  zrt::SequenceOp getSequence(zrt::TransitionOp transition);
  mlir::FlatSymbolRefAttr getBucket(zrt::SequenceOp sequence, int64_t i);
  mlir::FlatSymbolRefAttr getMemory(mlir::Attribute bucket);
  bool isOpen(zrt::SequenceOp sequence, mlir::FlatSymbolRefAttr bucket);
  zrt::UnitTableOp findUnit(mlir::Attribute bucket);
  void walkUnit(zrt::Event event, zrt::SequenceOp sequence,
                llvm::StringRef unit);
  void arrive(zrt::TransitionOp transition, llvm::StringRef parameter);
  void close(zrt::SequenceOp sequence);
  void closeComplete(zrt::SequenceOp sequence);
  void run(zrt::TransitionOp transition, llvm::StringRef parameter);
  void run(mlir::FlatSymbolRefAttr handler, llvm::StringRef parameter);
  std::string getText(zrt::RuntimeCall call, llvm::StringRef parameter);

  zrt::ProgramOp program;
  ProgramCalls calls;
  std::string state;
  llvm::StringMap<mlir::FlatSymbolRefAttr> bucketOf;
  /// Of the open backward pass. A bucket is complete if nothing is outstanding:
  /// no gradient; of a unit, no event `reshard`.
  int64_t closed = 0;
  llvm::DenseMap<mlir::Attribute, int64_t> outstanding;
  std::vector<std::string> waiting;
};

} // namespace zero::test

#endif // ZERO_TEST_UNIT_TRACE_WALKER_H
