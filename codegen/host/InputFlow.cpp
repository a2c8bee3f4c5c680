//===- InputFlow.cpp - Which inputs scalars depend on ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/host/InputFlow.h"

#include "dialect/zero/ZeroDialect.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace zero;
using llvm::BitVector;

/// The symbols that calls of a step name. A table that no call names changes no
/// step.
static llvm::DenseSet<StringAttr> findNamed(zrt::ProgramOp program) {
  llvm::DenseSet<Attribute> handlers; // without those of units
  for (auto op : program.getOps<zrt::TransitionOp>())
    handlers.insert(op.getHandlers().begin(), op.getHandlers().end());
  for (auto op : program.getOps<zrt::SequenceOp>())
    handlers.insert(op.getHandlers().begin(), op.getHandlers().end());
  llvm::DenseSet<StringAttr> named;
  for (auto handler : program.getOps<zrt::HandlerOp>())
    if (handlers.contains(FlatSymbolRefAttr::get(handler)))
      for (Operation &call : handler.getBody().front())
        call.getAttrDictionary().walk(
            [&](FlatSymbolRefAttr symbol) { named.insert(symbol.getAttr()); });
  return named;
}

namespace {
/// Sets of inputs by number, each of which exists once. Few sets occur, and
/// most unions are of one set or were made before.
class InputSets {
public:
  static constexpr unsigned kEmpty = 0;

  explicit InputSets(size_t numInputs) { (void)get(BitVector(numInputs)); }

  unsigned getSingle(unsigned input) {
    BitVector set(sets[kEmpty].size());
    set.set(input);
    return get(set);
  }
  unsigned unite(unsigned a, unsigned b) {
    if (a == b || b == kEmpty)
      return a;
    if (a == kEmpty)
      return b;
    auto [it, isNew] = unions.try_emplace(std::minmax(a, b));
    if (isNew) {
      BitVector set = sets[a];
      set |= sets[b];
      it->second = get(set);
    }
    return it->second;
  }
  const std::vector<BitVector> &getAll() const { return sets; }

private:
  unsigned get(const BitVector &set) {
    auto it = llvm::find(sets, set);
    if (it == sets.end())
      it = sets.insert(it, set);
    return it - sets.begin();
  }

  std::vector<BitVector> sets;
  llvm::DenseMap<std::pair<unsigned, unsigned>, unsigned> unions;
};

/// Follows inputs through scalar slots.
class Flow {
public:
  explicit Flow(zrt::ProgramOp program);

  /// The set of all slots of |symbol|.
  unsigned get(StringRef symbol) {
    unsigned all = InputSets::kEmpty;
    for (int64_t i = 0; i < sizes.lookup(symbol); ++i)
      all = sets.unite(all, slots.lookup({symbol, i}));
    return all;
  }
  unsigned get(StringRef symbol, int64_t index) {
    return slots.lookup({symbol, index});
  }

  InputSets sets;
  llvm::DenseSet<StringAttr> named; // by calls

private:
  /// Returns whether a slot depends on more inputs now.
  bool run(zrt::ScalarsOp scalars);

  llvm::DenseMap<StringRef, int64_t> sizes;
  llvm::DenseMap<std::pair<StringRef, int64_t>, unsigned> slots;
};
} // namespace

bool Flow::run(zrt::ScalarsOp scalars) {
  bool isChanged = false;
  llvm::DenseMap<Value, unsigned> values;
  for (Operation &op : scalars.getBody().front()) {
    unsigned set = InputSets::kEmpty;
    for (Value operand : op.getOperands())
      set = sets.unite(set, values.lookup(operand));
    if (auto load = dyn_cast<zrt::LoadSlotOp>(op))
      set = slots.lookup({load.getSlots(), load.getIndex()});
    if (auto store = dyn_cast<zrt::StoreSlotOp>(op)) {
      unsigned &slot = slots[{store.getSlots(), store.getIndex()}];
      unsigned before = slot;
      slot = sets.unite(slot, set);
      isChanged |= slot != before;
    }
    for (Value result : op.getResults())
      values[result] = set;
  }
  return isChanged;
}

Flow::Flow(zrt::ProgramOp program)
    : sets(program.getInputs().size()), named(findNamed(program)) {
  for (auto op : program.getOps<zrt::SlotsOp>())
    sizes[op.getSymName()] = op.size();
  for (auto [i, input] : llvm::enumerate(program.getInputSlots()))
    slots[{input.getSymName(), 0}] = sets.getSingle(i);
  SmallVector<zrt::ScalarsOp> programs;
  for (auto scalars : program.getOps<zrt::ScalarsOp>())
    if (named.contains(scalars.getSymNameAttr()))
      programs.push_back(scalars);
  // Programs are mostly in the order in which they run, so few rounds are
  // needed.
  for (bool isChanged = true; isChanged;) {
    isChanged = false;
    for (zrt::ScalarsOp scalars : programs)
      isChanged |= run(scalars);
  }
}

/// The inputs on which scalars depend that kernels read, or that live across
/// steps.
static BitVector findHyper(zrt::ProgramOp program, Flow &flow) {
  unsigned set = InputSets::kEmpty;
  for (auto segments : program.getOps<zrt::SegmentsOp>())
    if (flow.named.contains(segments.getSymNameAttr()))
      for (auto row : segments.getScalars().getAsRange<FlatSymbolRefAttr>())
        set = flow.sets.unite(set, flow.get(row.getValue()));
  for (auto state : program.getOps<zrt::ScalarStateOp>())
    set = flow.sets.unite(set, flow.get(state.getSlots(), state.getIndex()));
  return flow.sets.getAll()[set];
}

/// By buffer, the segments over which calls work on it.
static llvm::DenseMap<Attribute, llvm::SetVector<StringAttr>>
findSegments(zrt::ProgramOp program, const SymbolTable &symbols) {
  llvm::DenseMap<Attribute, llvm::SetVector<StringAttr>> found;
  program.walk([&](zrt::RuntimeCall call) {
    SmallVector<FlatSymbolRefAttr> buffers;
    SmallVector<StringAttr, 1> segments;
    call->getAttrDictionary().walk([&](FlatSymbolRefAttr symbol) {
      Operation *op = symbols.lookup(symbol.getAttr());
      if (isa_and_present<zrt::BufferOp>(op))
        buffers.push_back(symbol);
      else if (isa_and_present<zrt::SegmentsOp>(op))
        segments.push_back(symbol.getAttr());
    });
    for (FlatSymbolRefAttr buffer : buffers)
      found[buffer].insert(segments.begin(), segments.end());
  });
  return found;
}

static void findSets(zrt::ProgramOp program, Flow &flow, InputFlow &found) {
  SymbolTable outer(program->getParentOfType<ModuleOp>()), symbols(program);
  auto segmentsOf = findSegments(program, symbols);
  llvm::DenseMap<Attribute, SmallVector<Attribute>> buffersOf; // by bucket
  for (auto state : program.getOps<zrt::StateOp>())
    buffersOf[state.getBucketAttr()].push_back(state.getBufferAttr());
  for (auto &[bucketAttr, buffers] : buffersOf) {
    auto symbol = cast<FlatSymbolRefAttr>(bucketAttr);
    auto bucket = outer.lookup<BucketOp>(symbol.getAttr());
    if (!bucket)
      continue; // of frozen parameters
    llvm::SetVector<StringAttr> segments;
    for (Attribute buffer : buffers)
      segments.insert(segmentsOf[buffer].begin(), segmentsOf[buffer].end());
    for (StringAttr name : segments) {
      auto op = symbols.lookup<zrt::SegmentsOp>(name);
      if (op.getScalars().empty() || !flow.named.contains(name))
        continue;
      SmallVector<unsigned> ofRow;
      for (auto row : op.getScalars().getAsRange<FlatSymbolRefAttr>())
        ofRow.push_back(flow.get(row.getValue()));
      size_t interval = 0;
      for (auto [member, offset] :
           llvm::zip_equal(bucket.getMembers().getAsRange<FlatSymbolRefAttr>(),
                           bucket.getOffsets())) {
        while (interval + 1 < op.getEnds().size() &&
               op.getEnds()[interval] <= offset)
          ++interval;
        int64_t &set = found.setOf[member.getAttr()];
        set = flow.sets.unite(set, ofRow[op.getRows()[interval]]);
      }
    }
  }
}

InputFlow zero::findInputFlow(zrt::ProgramOp program) {
  InputFlow found;
  Flow flow(program);
  BitVector hyper = findHyper(program, flow);
  for (auto [i, input] : llvm::enumerate(program.getInputSlots())) {
    bool isHyper = !input.isTokens() && hyper.test(i);
    found.checks.push_back(input.getPositive() ? ZERO_RT_INPUT_POSITIVE
                           : isHyper           ? ZERO_RT_INPUT_FINITE
                                               : ZERO_RT_INPUT_FREE);
  }
  findSets(program, flow, found);
  found.sets = flow.sets.getAll();
  return found;
}
