//===- Liveness.cpp - When buffers hold what is still read ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-explain/Liveness.h"

#include "codegen/host/AbiNumbers.h"
#include "dialect/zrt/CallDescription.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace mlir;
using namespace zero;

Liveness::Liveness(const StageProgram &stage,
                   const zrt::ProgramSymbols &symbols)
    : symbols(symbols) {
  llvm::DenseSet<StringAttr> onDemand;
  zrt::ProgramOp program = stage.program;
  for (auto op : program.getOps<zrt::BufferOp>()) {
    if (op.getOnDemand())
      onDemand.insert(op.getMemory().getAttr());
    if (op.getSharesAttr())
      continue; // counted where the memory is
    const Tables &tables = stage.tables;
    const zero_rt_buffer_row &row =
        tables.buffers[tables.getBuffer(FlatSymbolRefAttr::get(op))];
    Memory &memory = memories[op.getSymNameAttr()];
    memory.buffer = {op.getSymName().str(),
                     op.getRole(),
                     op.getSpace(),
                     tables.getHeldElements(row) * getDtypeBytes(row.dtype),
                     {}};
  }
  for (auto &[name, memory] : memories) {
    memory.isOnDemand = onDemand.contains(name);
    memory.isAlways =
        !memory.isOnDemand && (memory.buffer.role == zrt::Role::parameter ||
                               memory.buffer.role == zrt::Role::state);
  }
}

/// Memory is given to a buffer, or taken from it.
void Liveness::order(FlatSymbolRefAttr buffer, Span span) {
  auto *it = memories.find(symbols.getMemory(buffer));
  if (it == memories.end())
    return;
  std::vector<Span> &alive = it->second.buffer.alive;
  constexpr double kOpen = std::numeric_limits<double>::infinity();
  if (!alive.empty() && alive.back().finish == kOpen)
    alive.back().finish = span.finish;
  else
    alive.push_back({span.start, kOpen});
}

void Liveness::add(zrt::RuntimeCall call, FlatSymbolRefAttr arriving,
                   Span span) {
  zrt::CallDescription description(call);
  llvm::DenseSet<StringAttr> read; // a kernel that updates says that it writes
  for (const zrt::CallArgument &argument : description.getArguments()) {
    if (description.isOrderOfMemory() && argument.symbol) {
      order(argument.symbol, span);
    } else if (argument.kind == zrt::CallArgument::Kind::buffers) {
      auto kernel = symbols.lookup<zrt::KernelOp>(argument.symbol);
      for (auto [i, buffer] :
           llvm::enumerate(argument.list.getAsRange<FlatSymbolRefAttr>()))
        if (kernel.getArrayAccess(i) != zrt::Access::write)
          read.insert(symbols.getMemory(buffer));
    } else if (argument.use == zrt::CallArgument::Use::reads &&
               argument.symbol) {
      read.insert(symbols.getMemory(argument.symbol));
    }
  }
  SmallVector<zrt::MemoryUse> uses = symbols.getUses(call, arriving);
  for (const zrt::MemoryUse &use : uses) {
    auto *it = memories.find(use.memory);
    if (it == memories.end() || it->second.isAlways || it->second.isOnDemand)
      continue;
    Memory &memory = it->second;
    std::vector<Span> &alive = memory.buffer.alive;
    bool reads = read.contains(use.memory);
    // A write behind a read begins something new, unless it adds to the old.
    if (alive.empty() || (use.writes && memory.wasRead && !reads))
      alive.push_back(span);
    alive.back().finish = std::max(alive.back().finish, span.finish);
    memory.wasRead = !use.writes;
  }
}

std::vector<TimedBuffer> Liveness::finish(double finish) {
  std::vector<TimedBuffer> buffers;
  buffers.reserve(memories.size());
  for (auto &[name, memory] : memories) {
    if (memory.isAlways)
      memory.buffer.alive = {{0, finish}};
    for (Span &span : memory.buffer.alive)
      span.finish = std::min(span.finish, finish);
    buffers.push_back(std::move(memory.buffer));
  }
  return buffers;
}

std::vector<const TimedBuffer *> zero::findPeak(const Timeline &timeline,
                                                zrt::Space space, Span span) {
  // What is alive grows only where something begins to be.
  std::vector<std::pair<double, int64_t>> changes;
  auto isWithin = [&](Span alive) {
    return alive.start <= span.finish && alive.finish >= span.start;
  };
  for (const TimedBuffer &buffer : timeline.buffers)
    for (Span alive : buffer.alive)
      if (buffer.space == space && isWithin(alive)) {
        changes.push_back({std::max(alive.start, span.start), -buffer.bytes});
        changes.push_back({alive.finish, buffer.bytes});
      }
  // Changes at one time are sorted so that beginnings come first. A call holds
  // what it reads and what it writes at once.
  llvm::sort(changes);
  int64_t bytes = 0, most = -1;
  double at = span.start;
  for (auto [time, change] : changes) {
    bytes -= change;
    if (bytes > most && change < 0 && time <= span.finish) {
      most = bytes;
      at = time;
    }
  }
  std::vector<const TimedBuffer *> peak;
  for (const TimedBuffer &buffer : timeline.buffers)
    if (buffer.space == space && llvm::any_of(buffer.alive, [&](Span alive) {
          return alive.start <= at && alive.finish >= at;
        }))
      peak.push_back(&buffer);
  return peak;
}
