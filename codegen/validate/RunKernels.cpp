//===- RunKernels.cpp - Kernels of a library on edge inputs ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/validate/RunKernels.h"

#include "codegen/validate/CallText.h"
#include "codegen/validate/EdgeNumbers.h"
#include "dialect/interpret/Array.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace zero;

/// A summing kernel begins at a multiple of this, and has a sum for each.
static constexpr int64_t kBlock = 4096;
static constexpr int64_t kLaunches = 64;
static constexpr size_t kTries = 512;

Bodies::Bodies(zrt::ProgramOp program) {
  ScopedDiagnosticHandler quiet(program.getContext(),
                                [](Diagnostic &) { return success(); });
  llvm::DenseMap<Attribute, int64_t> firstSlots;
  for (auto op : program.getOps<zrt::SlotsOp>()) {
    firstSlots[FlatSymbolRefAttr::get(op)] = slotNames.size();
    for (int64_t i = 0; i < op.size(); ++i)
      slotNames.push_back(slotText(op.getSymName().str(), i));
  }
  for (auto op : program.getOps<zrt::SegmentsOp>())
    for (Attribute scalars : op.getScalars())
      predicate = firstSlots.lookup(scalars);
  auto addUnknown = [&](auto op) {
    unknown.push_back("@" + op.getSymName().str() +
                      " has an operation that the interpreter does not know");
  };
  for (auto [row, op] : llvm::enumerate(program.getOps<zrt::KernelOp>())) {
    FailureOr<ScalarBody> body = ScalarBody::create(op.getBody().front());
    if (succeeded(body))
      kernels.push_back({op, int64_t(row), std::move(*body)});
    else
      addUnknown(op);
  }
  for (auto [row, op] : llvm::enumerate(program.getOps<zrt::ScalarsOp>())) {
    FailureOr<ScalarBody> body =
        ScalarBody::create(op.getBody().front(), [&](FlatSymbolRefAttr symbol) {
          return firstSlots.lookup(symbol);
        });
    if (succeeded(body))
      scalars.push_back({op, int64_t(row), std::move(*body)});
    else
      addUnknown(op);
  }
}

static std::string numberText(double value) {
  return llvm::formatv("{0}", llvm::format("%.17g", value));
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace {
/// An operand of a launch.
struct Operand {
  Operand(Type type, zrt::Access access, int64_t elements, Mixture mixture,
          std::mt19937 &random)
      : type(type), access(access), width(type.getIntOrFloatBitWidth() / 8),
        bytes((elements + 1) * width, 0xA5) {
    if (access == zrt::Access::write)
      return;
    EdgeNumbers numbers(*getFormat(type));
    for (int64_t i = 0; i < elements; ++i)
      writeNumber(type, numbers.draw(random, mixture), getAddress(i));
  }
  bool isRead() const { return access != zrt::Access::write; }
  bool isWritten() const { return access != zrt::Access::read; }
  /// Arrays have the alignment of their elements, and no more.
  uint8_t *getAddress(int64_t i) { return bytes.data() + (i + 1) * width; }
  double get(int64_t i) { return readNumber(type, getAddress(i)); }

  Type type;
  zrt::Access access;
  int64_t width;
  std::vector<uint8_t> bytes;
};

/// One launch of a kernel, by the library and by the interpreter.
class Launch {
public:
  Launch(zrt::KernelOp op, ScalarBody &body, int64_t begin, int64_t end,
         Mixture mixture, std::mt19937 &random)
      : op(op), body(body), begin(begin), end(end) {
    for (unsigned a = 0; a < op.getNumArrays(); ++a)
      operands.emplace_back(op.getArrayType(a), op.getArrayAccess(a),
                            end + kBehind, mixture, random);
    EdgeNumbers numbers(kF64);
    for (uint64_t i = 0; i < op.getNumScalars(); ++i)
      scalars.push_back(numbers.draw(random, mixture));
  }
  /// A predicate of 0 lets a kernel run.
  void allow() { scalars.front() = 0; }
  std::string compare(zero_rt_kernel_fn function);

private:
  static constexpr int64_t kBehind = 3;
  std::string compareElement(std::vector<Operand> &after, int64_t element,
                             ArrayRef<Number> results);
  std::string compareSums(ArrayRef<double> partials, ArrayRef<Number> terms);
  std::string describe(int64_t element);

  zrt::KernelOp op;
  ScalarBody &body;
  int64_t begin, end;
  std::vector<Operand> operands;
  std::vector<double> scalars;
};
} // namespace

/// What the kernel computes |element| from.
std::string Launch::describe(int64_t element) {
  std::string text = "; operands";
  for (Operand &operand : operands)
    text += " " + (operand.isRead() ? numberText(operand.get(element)) : "-");
  text += "; scalars";
  for (double scalar : scalars)
    text += " " + numberText(scalar);
  return text;
}

std::string Launch::compareElement(std::vector<Operand> &after, int64_t element,
                                   ArrayRef<Number> results) {
  for (auto [a, was, is] : llvm::enumerate(operands, after)) {
    auto differ = [&, a = a](const std::string &expected) {
      return llvm::formatv("element {0} of operand {1} is {2}, expected {3}{4}",
                           element, a, numberText(after[a].get(element)),
                           expected, describe(element))
          .str();
    };
    if (results.empty() || !was.isWritten()) {
      if (std::memcmp(was.getAddress(element), is.getAddress(element),
                      was.width) != 0)
        return differ("what it was, " + numberText(was.get(element)));
      continue;
    }
    if (!areSame(is.get(element), results.front().value))
      return differ(numberText(results.front().value));
    results = results.drop_front();
  }
  return "";
}

std::string Launch::compareSums(ArrayRef<double> partials,
                                ArrayRef<Number> terms) {
  Calculator calculator(Arithmetic::Typed);
  for (auto [block, sum] : llvm::enumerate(partials)) {
    int64_t first = std::max<int64_t>(block * kBlock, begin);
    int64_t last = std::min<int64_t>((block + 1) * kBlock, end);
    // No block begins where the range is empty.
    double expected = -1;
    if (first < last && !terms.empty())
      expected =
          sumInLanes(calculator, terms.slice(first - begin, last - first))
              .value;
    if (!areSame(sum, expected))
      return llvm::formatv(
                 "the sum of elements {0} to {1} is {2}, expected {3}", first,
                 last, numberText(sum), numberText(expected))
          .str();
  }
  return "";
}

std::string Launch::compare(zero_rt_kernel_fn function) {
  std::vector<Operand> after = operands;
  SmallVector<void *> addresses;
  for (Operand &operand : after)
    addresses.push_back(operand.getAddress(0));
  std::vector<double> partials(end / kBlock + 2, -1); // as nothing else is
  function(addresses.data(), scalars.data(), begin, end, partials.data());

  Calculator calculator(Arithmetic::Typed);
  bool runs = !op.getPredicated() || scalars.front() == 0;
  std::vector<Number> results(body.getNumResults()), arguments, terms;
  for (int64_t element = 0; element < end + kBehind; ++element) {
    ArrayRef<Number> expected;
    if (runs && element >= begin && element < end) {
      arguments.clear();
      for (Operand &operand : operands)
        if (operand.isRead())
          arguments.push_back({operand.get(element), 0});
      for (double scalar : scalars)
        arguments.push_back({scalar, 0});
      body.run(calculator, arguments, results);
      expected = results;
      if (op.getSums())
        terms.push_back(results.back());
    }
    if (std::string text = compareElement(after, element, expected);
        !text.empty())
      return text;
  }
  return compareSums(partials, terms);
}

//===----------------------------------------------------------------------===//
// Scalar programs
//===----------------------------------------------------------------------===//

/// The constants of |program|. If all slots hold the number of ranks, the
/// program finds that all ranks made as many backward passes.
static std::vector<double> getConstants(zrt::ScalarsOp program) {
  std::vector<double> constants;
  program.walk([&](arith::ConstantOp op) {
    if (auto value = dyn_cast<FloatAttr>(op.getValue()))
      constants.push_back(value.getValueAsDouble());
  });
  return constants;
}

/// Runs a scalar program on slots with the values |after|.
static std::string compareScalars(ScalarBody &body, zero_rt_scalar_fn function,
                                  ArrayRef<std::string> slotNames,
                                  std::vector<double> after) {
  std::vector<Number> expected;
  for (double value : after)
    expected.push_back({value, 0});
  std::vector<Number> before = expected;
  function(after.data());
  body.run(Calculator(Arithmetic::Typed), {}, {}, expected);
  for (auto [i, is, number] : llvm::enumerate(after, expected)) {
    if (areSame(is, number.value))
      continue;
    std::string text =
        llvm::formatv("slot {0} is {1}, expected {2}; slots", slotNames[i],
                      numberText(is), numberText(number.value));
    for (auto [slot, writes] : body.getSlots())
      if (!writes)
        text += " " + slotNames[slot] + " = " + numberText(before[slot].value);
    return text;
  }
  return "";
}

/// The slots that |body| reads, each once.
static SmallVector<int64_t> getRead(const ScalarBody &body) {
  llvm::SetVector<int64_t> read;
  for (auto [slot, writes] : body.getSlots())
    if (!writes)
      read.insert(slot);
  return read.takeVector();
}

static Mixture getMixture(int64_t launch) {
  constexpr Mixture mixtures[] = {{1, 0}, {0, 0}, {1, 6}, {4, 0},
                                  {1, 4}, {8, 0}, {2, 1}, {0, 1}};
  return mixtures[launch % std::size(mixtures)];
}

/// Sizes are multiples of nothing. One is empty, and one has one element. Each
/// launch has scalars of its own, so that most are short.
static int64_t getSize(zrt::KernelOp kernel, int64_t launch, int64_t tuples) {
  if (launch < 2)
    return launch;
  if (kernel.getSums() && launch == kLaunches - 2)
    return kBlock + 33; // of two blocks
  return (launch % 8 == 2 ? 5 : 1) * tuples / (3 * kLaunches / 2) - launch % 7;
}

std::vector<double> Bodies::getApplied(ScalarBody &body,
                                       ArrayRef<int64_t> read) {
  std::vector<double> slots(slotNames.size());
  auto isApplied = [&] {
    std::vector<Number> numbers;
    for (double value : slots)
      numbers.push_back({value, 0});
    body.run(Calculator(Arithmetic::Typed), {}, {}, numbers);
    return numbers[predicate].value == 0;
  };
  if (isApplied())
    return slots;
  // Each try runs the whole body.
  for (int64_t slot : read.take_front(std::min(kTries, read.size()))) {
    slots[slot] = 1;
    if (isApplied())
      return slots;
    slots[slot] = 0;
  }
  return slots;
}

std::string Bodies::run(const zero_rt_library &library, int64_t tuples) {
  std::mt19937 random(1);
  for (Kernel &kernel : kernels) {
    for (int64_t launch = 0; launch < kLaunches; ++launch) {
      int64_t begin = kernel.op.getSums() ? launch % 2 * kBlock : launch * 5;
      int64_t size = std::max<int64_t>(getSize(kernel.op, launch, tuples), 0);
      Launch run(kernel.op, kernel.body, begin, begin + size,
                 getMixture(launch), random);
      if (kernel.op.getPredicated() && launch % 16 != 2)
        run.allow();
      if (std::string text = run.compare(library.kernels[kernel.row]);
          !text.empty())
        return "kernel @" + kernel.op.getSymName().str() + ": " + text;
    }
  }
  EdgeNumbers numbers(kF64);
  for (Scalars &program : scalars) {
    std::vector<double> constants = getConstants(program.op);
    // Each edge alone in each slot: an outcome depends on a sum only where the
    // step would be applied.
    SmallVector<int64_t> read = getRead(program.body);
    const std::vector<double> applied = getApplied(program.body, read);
    ArrayRef<double> edges = numbers.getEdges();
    size_t alone = std::min<size_t>(read.size() * edges.size(), tuples / 2);
    for (size_t i = 0; i < size_t(tuples); ++i) {
      std::vector<double> slots = applied;
      if (i < constants.size())
        std::fill(slots.begin(), slots.end(), constants[i]);
      else if (size_t k = i - constants.size(); k < alone)
        slots[read[k % read.size()]] = edges[k / read.size()];
      else
        for (double &slot : slots)
          slot = numbers.draw(random, getMixture(i));
      if (std::string text =
              compareScalars(program.body, library.scalar_programs[program.row],
                             slotNames, std::move(slots));
          !text.empty())
        return "scalar program @" + program.op.getSymName().str() + ": " + text;
    }
  }
  return "";
}
