//===- CallDescription.h - The arguments of a call of the runtime -*- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_ZRT_CALLDESCRIPTION_H
#define ZERO_DIALECT_ZRT_CALLDESCRIPTION_H

#include "dialect/zrt/ZrtDialect.h"

namespace zrt {

/// An argument of a call, or two that belong together. The kinds are those of
/// zero_rt/arguments.def.
struct CallArgument {
  enum class Kind {
    buffer,
    buffers, // the operands of a kernel, and their number
    bucket,
    parameter,
    kernel,
    program,
    segments, // a table, and the number of its elements
    axes,
    slot,
    slots, // the first one, and their number
    event,
    arrival, // the event that runs the handler
    stream,
    role,
    flag
  };
  /// What the call does with the memory that the argument names.
  enum class Use { none, reads, writes };

  Kind kind;
  mlir::FlatSymbolRefAttr symbol = {}; // null: none
  mlir::ArrayAttr list = {};           // of buffers or axes; null: none
  int64_t number = 0;                  // of a slot, stream, role or flag
  Use use = Use::none;
  /// Axes: only ranks on the pipeline stages that have the buffers meet.
  bool isAtPlace = false;
};

/// The arguments of a call, in the order of its prototype. An op fills it.
class CallDescription {
  using Kind = CallArgument::Kind;
  using Use = CallArgument::Use;

public:
  explicit CallDescription(RuntimeCall call) { call.describeCall(*this); }

  llvm::ArrayRef<CallArgument> getArguments() const { return arguments; }
  /// The first buffer or bucket; null if there is none. All buffers of a call
  /// are on the same pipeline stages.
  mlir::FlatSymbolRefAttr getPlace() const;
  /// Of the pipeline stages that have the buffers, only the first one runs the
  /// call.
  bool isOnFirstStage() const { return onFirstStage; }

  // How an op describes its call.

  void reads(mlir::FlatSymbolRefAttr buffer) {
    add({Kind::buffer, buffer, {}, 0, Use::reads});
  }
  void writes(mlir::FlatSymbolRefAttr buffer) {
    add({Kind::buffer, buffer, {}, 0, Use::writes});
  }
  /// The kernel says which of the buffers it reads and writes.
  void runs(mlir::FlatSymbolRefAttr kernel, mlir::ArrayAttr buffers) {
    add({Kind::kernel, kernel});
    add({Kind::buffers, kernel, buffers});
  }
  void segments(mlir::FlatSymbolRefAttr symbol) {
    add({Kind::segments, symbol});
  }
  void program(mlir::FlatSymbolRefAttr symbol) { add({Kind::program, symbol}); }
  /// Writes the gradients of a bucket.
  void fills(mlir::FlatSymbolRefAttr bucket) {
    add({Kind::bucket, bucket, {}, 0, Use::writes});
  }
  void parameter(mlir::FlatSymbolRefAttr symbol) {
    add({Kind::parameter, symbol});
  }
  /// Null: none.
  void axes(mlir::ArrayAttr names, bool atPlace = false) {
    add({Kind::axes, {}, names, 0, Use::none, atPlace});
  }
  void readsSlot(mlir::FlatSymbolRefAttr slots, int64_t index) {
    add({Kind::slot, slots, {}, index, Use::reads});
  }
  void writesSlot(mlir::FlatSymbolRefAttr slots, int64_t index) {
    add({Kind::slot, slots, {}, index, Use::writes});
  }
  void writesSlots(mlir::FlatSymbolRefAttr slots) {
    add({Kind::slots, slots, {}, 0, Use::writes});
  }
  void event(mlir::FlatSymbolRefAttr symbol) { add({Kind::event, symbol}); }
  void arrival(Use use) { add({Kind::arrival, {}, {}, 0, use}); }
  /// The call queues no work. Its stream says when the memory is used.
  void ordersMemory() { ordered = true; }
  bool isOrderOfMemory() const { return ordered; }
  void stream(Stream stream) {
    add({Kind::stream, {}, {}, static_cast<int64_t>(stream)});
  }
  /// Gives a buffer another role, and leaves its contents alone.
  void becomes(mlir::FlatSymbolRefAttr buffer, Role role) {
    add({Kind::buffer, buffer});
    add({Kind::role, buffer, {}, static_cast<int64_t>(role)});
  }
  void firstStage() { onFirstStage = true; }
  void flag(bool flag) { add({Kind::flag, {}, {}, flag}); }

private:
  void add(CallArgument argument) { arguments.push_back(argument); }

  llvm::SmallVector<CallArgument> arguments;
  bool onFirstStage = false;
  bool ordered = false;
};

} // namespace zrt

#endif // ZERO_DIALECT_ZRT_CALLDESCRIPTION_H
