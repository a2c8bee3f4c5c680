//===- Sample.cpp - A reference for some elements of a large step ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Sample.h"

#include "tools/zero-run/Floats.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/xxhash.h"

#include <cmath>

using namespace mlir;
using namespace zero;

/// Elements that stand for all that are left out of a parameter.
static constexpr int64_t kRest = 12;

/// Whether a gradient is an addend on every rank, of a parameter that every
/// rank holds.
static bool isDataParallel(ModuleOp logical) {
  for (auto parameter : logical.getOps<ParameterOp>())
    if (parameter.getValueType().has(PlacementKind::Sharded) ||
        !parameter.getValueType().getPresent().empty())
      return false;
  SymbolTableCollection symbols;
  return !logical
              .walk([&](BackwardOp backward) {
                auto step = backward->getParentOfType<StepOp>();
                auto mesh = symbols.lookupNearestSymbolFrom<MeshOp>(
                    step, step.getMeshAttr());
                for (Type type : backward.getGradients().getTypes())
                  for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>()) {
                    AxisPlacement placement =
                        cast<ValueType>(type).getPlacement(axis.getName());
                    if (mesh.getAxisSize(axis.getName()) != 1 &&
                        (placement.kind != PlacementKind::Partial ||
                         placement.reduced))
                      return WalkResult::interrupt();
                  }
                return WalkResult::advance();
              })
              .wasInterrupted();
}

/// Gives the gradients of parameters, from op to op, the |lengths| of what is
/// left of these; failure where an op is none of a logical step that has a norm
/// as all that elements share.
static LogicalResult shrink(StepOp step,
                            const llvm::StringMap<int64_t> &lengths) {
  DenseMap<Value, int64_t> lengthOf;
  auto set = [&](Value value, int64_t length) {
    lengthOf[value] = length;
    value.setType(cast<ValueType>(value.getType()).withShape({length}));
  };
  auto forward = [&](ValueRange operands, ValueRange results) {
    for (auto [operand, result] : llvm::zip_equal(operands, results))
      if (auto it = lengthOf.find(operand); it != lengthOf.end())
        set(result, it->second);
  };
  WalkResult result = step.getBody().walk([&](Operation *op) {
    if (auto backward = dyn_cast<BackwardOp>(op)) {
      for (auto [source, gradient] : llvm::zip_equal(
               backward.getSources().getAsRange<FlatSymbolRefAttr>(),
               backward.getGradients()))
        if (auto it = lengths.find(source.getValue()); it != lengths.end())
          set(gradient, it->second);
    } else if (auto batches = dyn_cast<MicroBatchesOp>(op)) {
      forward(batches.getBody().front().getTerminator()->getOperands(),
              batches.getSums());
    } else if (auto reduce = dyn_cast<ReduceOp>(op)) {
      forward(reduce.getInputs(), reduce.getOutputs());
    } else if (auto clip = dyn_cast<ClipOp>(op)) {
      forward(clip.getInputs(), clip.getOutputs());
    } else if (!isa<YieldOp, NormOp, UpdateOp>(op) &&
               llvm::any_of(op->getOperands(), [&](Value operand) {
                 return lengthOf.contains(operand);
               })) {
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return success(!result.wasInterrupted());
}

/// |count| of |elements| positions: the first, the last, and one in each of as
/// many stretches.
static std::vector<int64_t> choose(int64_t elements, int64_t count,
                                   uint64_t seed) {
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < count; ++i) {
    int64_t begin = elements * i / count, end = elements * (i + 1) / count;
    uint64_t key[] = {seed, static_cast<uint64_t>(i)};
    uint64_t hash = llvm::xxh3_64bits(
        ArrayRef(reinterpret_cast<const uint8_t *>(key), sizeof(key)));
    positions.push_back(i == 0           ? 0
                        : i + 1 == count ? elements - 1
                                         : begin + hash % (end - begin));
  }
  return positions;
}

std::unique_ptr<SampledReference>
SampledReference::create(ModuleOp logical, ArrayRef<ParameterInfo> parameters,
                         int64_t count, uint64_t seed) {
  if (!isDataParallel(logical))
    return nullptr;
  auto sampled = std::make_unique<SampledReference>();
  sampled->module = logical.clone();
  llvm::StringMap<int64_t> lengths;
  for (auto [i, info] : llvm::enumerate(parameters)) {
    // With the rest it is no smaller.
    bool isWhole = info.elements <= count + kRest;
    // The rest of many numbers of a small range is none.
    if (!isWhole && getFormat(info.arrivalType)->minExponent > kF32.minExponent)
      return nullptr;
    sampled->numElements += isWhole ? info.elements : count;
    if (isWhole)
      continue;
    sampled->taken[info.name] = {choose(info.elements, count, seed + i),
                                 info.arrivalType};
    lengths[info.name] = count + kRest;
    auto op = sampled->module->lookupSymbol<ParameterOp>(info.name);
    op.setType(op.getValueType().withShape({count + kRest}));
  }
  for (auto step : sampled->module->getOps<StepOp>())
    if (failed(shrink(step, lengths)))
      return nullptr;
  ScopedDiagnosticHandler quiet(logical.getContext(),
                                [](Diagnostic &) { return success(); });
  if (failed(verify(*sampled->module)))
    return nullptr;
  sampled->inner = createInterpreterEngine(*sampled->module, Arithmetic::F64);
  if (!sampled->inner)
    return nullptr;
  return sampled;
}

const std::vector<int64_t> *SampledReference::find(StringRef name) const {
  auto it = taken.find(name);
  return it == taken.end() ? nullptr : &it->second.positions;
}

template <typename T>
static std::vector<T> select(ArrayRef<T> all, ArrayRef<int64_t> positions) {
  std::vector<T> selected;
  for (int64_t position : positions)
    selected.push_back(all[position]);
  return selected;
}

LogicalResult SampledReference::bind(const ParameterInfo &parameter,
                                     ArrayRef<double> values) {
  const std::vector<int64_t> *positions = find(parameter.name);
  if (!positions)
    return inner->bind(parameter, values);
  std::vector<double> some = select(values, *positions);
  some.resize(positions->size() + kRest, 0.0);
  return inner->bind(parameter, some);
}

/// The sum of squares of the sum of all gradients of |name|, without those at
/// |positions|.
static double sumRest(ArrayRef<RankInputs> ranks, StringRef name,
                      ArrayRef<int64_t> positions) {
  std::vector<double> sum;
  for (const RankInputs &rank : ranks)
    for (const auto &arrived : rank.backwards) {
      auto it = arrived.find(name);
      if (it == arrived.end())
        continue;
      sum.resize(it->second.size());
      for (auto [total, addend] : llvm::zip_equal(sum, it->second))
        total += addend;
    }
  if (sum.empty())
    return 0;
  for (int64_t position : positions)
    sum[position] = 0;
  double squares = 0;
  for (double element : sum)
    squares += element * element;
  return squares;
}

/// Numbers of |format| whose squares add up to |squares|, as far as doubles do:
/// each leaves a thirtieth of what is left.
static void fillRest(double squares, const Format &format,
                     MutableArrayRef<double> rest) {
  for (double &number : rest) {
    number = std::isfinite(squares)
                 ? roundTo(format, 0.99 * std::sqrt(std::max(squares, 0.0)))
                 : squares;
    squares = std::isfinite(squares) ? squares - number * number : 0;
  }
}

FailureOr<StepResult> SampledReference::apply(ArrayRef<RankInputs> ranks) {
  std::vector<RankInputs> some;
  for (const RankInputs &rank : ranks) {
    RankInputs &copy = some.emplace_back();
    copy.inputs = rank.inputs;
    copy.closesLast = rank.closesLast;
    copy.begunAsLast = rank.begunAsLast;
    for (const auto &arrived : rank.backwards) {
      auto &backward = copy.backwards.emplace_back();
      for (const auto &entry : arrived) {
        const std::vector<int64_t> *positions = find(entry.getKey());
        if (!positions) {
          backward[entry.getKey()] = entry.second;
          continue;
        }
        std::vector<double> &gradient = backward[entry.getKey()] =
            select(ArrayRef(entry.second), *positions);
        gradient.resize(positions->size() + kRest, 0.0);
      }
    }
  }
  // The first that delivers a gradient delivers the rest.
  for (const auto &entry : taken) {
    double squares = sumRest(ranks, entry.getKey(), entry.second.positions);
    bool isGiven = false;
    for (RankInputs &rank : some)
      for (auto &arrived : rank.backwards)
        if (auto it = arrived.find(entry.getKey());
            it != arrived.end() && !isGiven) {
          fillRest(squares, *getFormat(entry.second.arrivalType),
                   MutableArrayRef(it->second).take_back(kRest));
          isGiven = true;
        }
  }
  return inner->apply(some);
}

std::vector<Number>
SampledReference::withoutRest(const ParameterInfo &parameter,
                              std::vector<Number> numbers) const {
  if (find(parameter.name) && !numbers.empty())
    numbers.resize(numbers.size() - kRest);
  return numbers;
}

FailureOr<std::vector<Number>>
SampledReference::getParameter(int64_t rank, const ParameterInfo &parameter) {
  FailureOr<std::vector<Number>> numbers = inner->getParameter(rank, parameter);
  if (failed(numbers))
    return failure();
  return withoutRest(parameter, std::move(*numbers));
}

FailureOr<std::vector<Number>>
SampledReference::getState(StringRef role, const ParameterInfo &parameter) {
  FailureOr<std::vector<Number>> numbers = inner->getState(role, parameter);
  if (failed(numbers))
    return failure();
  return withoutRest(parameter, std::move(*numbers));
}

int64_t SampledReference::getPosition(const ParameterInfo &parameter,
                                      int64_t index) const {
  const std::vector<int64_t> *positions = find(parameter.name);
  return positions ? (*positions)[index] : index;
}

std::vector<Number> SampledReference::pick(const ParameterInfo &parameter,
                                           std::vector<Number> all) const {
  const std::vector<int64_t> *positions = find(parameter.name);
  if (!positions || all.size() != size_t(parameter.elements))
    return all;
  return select(ArrayRef<Number>(all), *positions);
}
