//===- StepReader.cpp - The meaning of a step in the zero dialect ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The logical, sharded and placed phase. That sums over ranks are taken where
// they must be is in the types; this reads which numbers they are the sums of.
//
//===----------------------------------------------------------------------===//

#include "passes/prove/StepReader.h"

#include "passes/prove/RelativeError.h"

#include "passes/prove/AbsentGroups.h"
#include "passes/prove/Gradient.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

SmallVector<StringAttr> StepReader::getMembers(StringAttr source) {
  SmallVector<StringAttr> &members = membersOf[source];
  if (!members.empty())
    return members;
  if (auto bucket = symbols.lookup<BucketOp>(source))
    for (auto member : bucket.getMembers().getAsRange<FlatSymbolRefAttr>())
      members.push_back(member.getAttr());
  else
    members.push_back(source);
  return members;
}

void StepReader::readBackward(BackwardOp op) {
  for (auto [symbol, result] :
       llvm::zip_equal(op.getSources().getAsRange<FlatSymbolRefAttr>(),
                       op.getGradients())) {
    auto type = cast<ValueType>(result.getType());
    auto bucket = symbols.lookup<BucketOp>(symbol.getAttr());
    AxisSet over = getAxes(result, PlacementKind::Partial);
    Number arriving =
        makeSource(algebra, algebra.gradient(Epoch::current, over));
    SmallVector<StringAttr> members = getMembers(symbol.getAttr());
    // The sum of several pieces has more bits than each of them.
    if (llvm::all_of(members, [&](StringAttr member) {
          return symbols.lookup<ParameterOp>(member).getUses() == 1;
        }))
      arriving.arrive(
          Precision(bucket ? bucket.getArrivalType() : type.getElementType()));
    if (bucket)
      arriving.narrow(Precision(type.getElementType()));
    arrays[result] = {symbol.getAttr(),
                      SmallVector<Number, 1>(members.size(), arriving)};
    for (StringAttr member : members) {
      ParameterSemantics &parameter = semantics.parameters[member];
      if (parameter.op)
        proof.report.error(op)
            << "gradient of '" << member.getValue() << "' arrives twice";
      parameter.op = symbols.lookup<ParameterOp>(member);
      parameter.elements = mesh.getNumHeld(parameter.op.getValueType());
      parameter.arrivesOver = over;
      for (const AxisPlacement &placement : type.getPlacements())
        if (placement.reduced)
          parameter.reducedOver |= semantics.axes.getSet({placement.axis});
      parameter.normalization = algebra.divide(
          algebra.integer(1), getMonomial(algebra, mesh, type.getScale()));
      parameter.prescaled = getMonomial(
          algebra, mesh, mesh.expandFlattened(op.getPrescaled().getFactors()));
      parameter.arrival =
          bucket ? bucket.getArrivalType() : type.getElementType();
    }
  }
}

bool StepReader::readMicroBatches(MicroBatchesOp op) {
  for (Operation &inner : op.getBody().front().without_terminator())
    if (!read(inner))
      return false;
  Precision kept(op.getAccumulatorType());
  Operation *yield = op.getBody().front().getTerminator();
  for (auto [from, to] : llvm::zip_equal(yield->getOperands(), op.getSums())) {
    Array &sum = copy(from, to);
    for (Number &member : sum.members) {
      member.expr = sumOverBackwards(algebra, member.expr);
      member.narrow(kept);
    }
    for (StringAttr member : getMembers(sum.source))
      semantics.parameters[member].kept = kept;
  }
  return true;
}

template <typename OpT>
void StepReader::sumAsSent(OpT op, Value input, Number &number) {
  auto type = cast<ValueType>(input.getType());
  AxisSet set = getAxes(input, PlacementKind::Partial);
  if constexpr (!std::is_same_v<OpT, ReduceOp>)
    set = semantics.axes.getSet(op.getAxes());
  if (op.getReduceDtype() && *op.getReduceDtype() != type.getElementType() &&
      type.has(PlacementKind::Partial))
    number.convert(Precision(*op.getReduceDtype()));
  // All members of a bucket arrive alike.
  AxisSet arrivesOver = 0;
  if (auto it = arrays.find(input); it != arrays.end() && it->second.source)
    arrivesOver =
        semantics.parameters[getMembers(it->second.source).front()].arrivesOver;
  number = sumOverRanks(algebra, number, arrivesOver,
                        Precision(type.getElementType()), semantics.axes, set,
                        getStages(input));
}

void StepReader::readReduce(ReduceOp op) {
  for (auto [input, output] :
       llvm::zip_equal(op.getInputs(), op.getOutputs())) {
    auto type = cast<ValueType>(input.getType());
    Number factor = makeSource(
        algebra, algebra.divide(algebra.integer(1),
                                getMonomial(algebra, mesh, type.getScale())));
    factor.narrow(Precision::f64());
    auto reduce = [&, input = input](Number &number) {
      sumAsSent(op, input, number);
      multiply(number, factor);
    };
    if (!arrays.contains(input)) {
      reduce(scalars[output] = scalar(input));
      continue;
    }
    Array &sums = copy(input, output);
    for (auto [name, member] :
         llvm::zip_equal(getMembers(sums.source), sums.members)) {
      reduce(member);
      // Whether it is finite is looked at, too.
      Precision &sent = semantics.parameters[name].summedReduceDtype;
      sent = sent.limitedBy(member.reduceDtype);
    }
  }
}

void StepReader::multiply(Number &number, const Number &factor) {
  double error = number.error + factor.error + kErrorOfScale;
  number.expr = algebra.multiply(number.expr, factor.expr);
  number.narrowAs(factor);
  number.error = error;
}

void StepReader::readScale(Value output, Value input, const Number &factor) {
  if (!arrays.contains(input)) {
    Number &product = scalars[output] = scalar(input);
    multiply(product, factor);
    product.narrow(Precision::f64());
    return;
  }
  // The update takes the product, and takes it in its own type.
  for (Number &member : copy(input, output).members)
    multiply(member, factor);
}

Number StepReader::getSumSquares(ValueRange inputs, bool isWhole) {
  Number sum;
  SmallVector<Expr> addends;
  for (Value input : inputs) {
    Array array = arrays.lookup(input);
    if (!array.source) {
      addends.push_back(algebra.undefined("a sum of squares of no gradient"));
      continue;
    }
    // Other stages add nothing. Types forbid uses of a value there that is not
    // a share of a sum.
    AxisSet stages = getStages(input);
    Number square, last;
    for (auto [name, member] :
         llvm::zip_equal(getMembers(array.source), array.members)) {
      Precision &sent = semantics.parameters[name].summedReduceDtype;
      sent = sent.limitedBy(member.reduceDtype);
      if (semantics.parameters[name].elements == 0)
        continue;
      if (!(member == last)) {
        square = member;
        square.expr = algebra.multiply(member.expr, member.expr);
        square.narrow(Precision::f64());
        sum.roundings = sum.roundings.limitedBy(square.roundings);
        sum.error = std::max(sum.error, 2 * member.error);
      }
      last = member;
      addends.push_back(sumOverElements(
          algebra, square.expr, name,
          isWhole ? 0 : getAxes(input, PlacementKind::Sharded) | stages,
          getAddendType(member, semantics.parameters[name].kept)));
    }
  }
  Number made = makeSum(algebra, algebra.sum(addends), sum.roundings);
  made.error = sum.error;
  return made;
}

//===----------------------------------------------------------------------===//
// Everything else
//===----------------------------------------------------------------------===//

Expr StepReader::withoutScales(Expr a) {
  return algebra.substitute(a, [&](BaseRef base) -> Expr {
    bool isScale = base->kind == BaseKind::symbol && base->own == 0 &&
                   base->name != kAccumulation;
    return isScale ? algebra.integer(1) : nullptr;
  });
}

bool StepReader::readScalar(Operation &op) {
  return llvm::TypeSwitch<Operation *, bool>(&op)
      .Case([&](FactorOp op) {
        Number tokens, lossScale;
        if (op.getTokens())
          tokens = scalar(op.getTokens());
        if (op.getLossScale())
          lossScale = scalar(op.getLossScale());
        Number &factor = scalars[op.getFactor()] = makeSource(
            algebra, getMonomial(algebra, mesh, op.getScale().getFactors(),
                                 tokens.expr, lossScale.expr));
        factor.narrowAs(tokens);
        factor.narrowAs(lossScale);
        factor.narrow(Precision::f64());
        return true;
      })
      .Case([&](ReadScaleOp op) {
        scalars[op.getValue()] =
            makeSource(algebra, algebra.symbol(kLossScale));
        scalars[op.getValue()].narrow(Precision::f64());
        return true;
      })
      .Case([&](ConstantOp op) {
        scalars[op.getResult()] = makeSource(
            algebra, algebra.constant(op.getValue().convertToDouble()));
        return true;
      })
      .Case([&](SqrtOp op) {
        Number &root = scalars[op.getOutput()] = scalar(op.getInput());
        root.expr = algebra.squareRoot(root.expr);
        root.narrow(Precision::f64());
        return true;
      })
      .Case([&](ClipCoefficientOp op) {
        scalars[op.getCoefficient()] =
            clipCoefficient(algebra, scalar(op.getNorm()),
                            readMax(op.getMax(), op.getConstantMax()),
                            op.getEpsilon().convertToDouble());
        return true;
      })
      .Case([&](ArrivalCountOp op) {
        Expr count = algebra.symbol(kAccumulation);
        scalars[op.getBackwards()] = makeSource(algebra, count);
        scalars[op.getSquared()] =
            makeSource(algebra, algebra.multiply(count, count));
        scalars[op.getMissing()] =
            makeSource(algebra, getMissing(algebra, semantics.axes));
        return true;
      })
      .Case([&](CountReplicatedOnceOp op) {
        Number once = scalar(op.getInput());
        once.expr = countReplicatedOnce(algebra, once.expr,
                                        semantics.axes.getSet(op.getAxes()) &
                                            ~getStages(op.getInput()));
        scalars[op.getOutput()] = once;
        return true;
      })
      .Case([&](StackOp op) {
        vectors[op.getVector()] = llvm::map_to_vector(
            op.getScalars(), [&](Value value) { return scalar(value); });
        return true;
      })
      .Case([&](UnstackOp op) {
        auto it = vectors.find(op.getVector());
        if (it == vectors.end())
          proof.report.opError(op) << "takes apart what is no stack of scalars";
        else
          for (auto [result, number] :
               llvm::zip_equal(op.getScalars(), it->second))
            scalars[result] = number;
        return true;
      })
      .Case([&](DeliveredCountOp op) {
        for (auto [parameter, count] :
             llvm::zip_equal(op.getParameters().getAsRange<FlatSymbolRefAttr>(),
                             op.getCounts()))
          scalars[count] =
              makeSource(algebra, getDelivered(algebra, parameter.getValue(),
                                               semantics.axes));
        return true;
      })
      .Case([&](GroupOutcomeOp op) {
        if (op.getOutcome() != outcome)
          proof.report.opError(op)
              << "depends on another outcome than the step's";
        scalars[op.getOwn()] = {algebra.undefined("the outcome of a group")};
        return true;
      })
      .Case([&](OutcomeOp op) {
        if (outcome)
          proof.report.error(op) << "a step has one outcome";
        outcome = op.getOutcome();
        scalars[outcome] = {algebra.undefined("the outcome")};
        if (int64_t(op.getRanks()) != semantics.getNumRanks())
          proof.report.error(op)
              << "outcome is for " << op.getRanks() << " ranks, the mesh has "
              << semantics.getNumRanks();
        Number number;
        number.expr = getOutcome(algebra, op, [&](Value operand) {
          number.narrowAs(scalar(operand));
          Expr expr = scalar(operand).expr;
          // A norm is finite exactly if its sum is, whatever its scale.
          return operand.getDefiningOp<NormOp>() ? withoutScales(expr) : expr;
        });
        readOutcome(proof, op, number, semantics);
        return true;
      })
      .Default([](Operation *) { return false; });
}

bool StepReader::read(Operation &op) {
  if (readScalar(op))
    return true;
  return llvm::TypeSwitch<Operation *, bool>(&op)
      .Case([&](MicroBatchesOp op) { return readMicroBatches(op); })
      .Case([&](BackwardOp op) { return readBackward(op), true; })
      .Case([&](ReduceOp op) { return readReduce(op), true; })
      .Case<AllReduceOp, ReduceScatterOp>([&](auto op) {
        AxisSet set = semantics.axes.getSet(op.getAxes());
        if (isa<MicroBatchesOp>(op->getParentOp())) {
          if (set & getStages(op.getInput()))
            proof.report.error(op) << "ranks of several pipeline stages meet "
                                      "in each backward pass, "
                                      "which one may not have begun yet";
          semantics.addMeeting(
              cast<ValueType>(op.getInput().getType()).getPresent(), set);
        }
        auto reduce = [&](Number &number) {
          sumAsSent(op, op.getInput(), number);
        };
        if (auto it = vectors.find(op.getInput()); it != vectors.end()) {
          SmallVector<Number> sums = it->second;
          llvm::for_each(sums, reduce);
          vectors[op.getOutput()] = std::move(sums);
        } else if (!arrays.contains(op.getInput())) {
          reduce(scalars[op.getOutput()] = scalar(op.getInput()));
        } else {
          llvm::for_each(copy(op.getInput(), op.getOutput()).members, reduce);
        }
        return true;
      })
      .Case<AllGatherOp, TransferOp>([&](auto op) {
        copy(op.getInput(), op.getOutput());
        return true;
      })
      .Case([&](AddOp op) {
        if (!arrays.contains(op.getLhs())) {
          Number sum = scalar(op.getLhs()), addend = scalar(op.getRhs());
          sum.add(algebra, addend);
          sum.narrow(Precision::f64());
          scalars[op.getSum()] = sum;
          return true;
        }
        Array other = arrays.lookup(op.getRhs());
        Array &sum = copy(op.getLhs(), op.getSum());
        if (sum.source != other.source) {
          proof.report.opError(op)
              << "adds elements of @" << sum.source.getValue() << " and of @"
              << other.source.getValue();
          return false;
        }
        for (auto [a, b] : llvm::zip_equal(sum.members, other.members))
          a.add(algebra, b);
        return true;
      })
      .Case([&](ScaleOp op) {
        readScale(op.getOutput(), op.getInput(), scalar(op.getFactor()));
        return true;
      })
      .Case([&](SumSquaresOp op) {
        scalars[op.getSum()] = getSumSquares(op.getInputs(), /*isWhole=*/false);
        return true;
      })
      .Case([&](NormOp op) {
        // A norm of one parameter alone has no other element to compare with.
        llvm::SmallDenseSet<StringAttr> counted;
        for (Value input : op.getInputs())
          if (StringAttr source = arrays.lookup(input).source;
              source && !counted.insert(source).second)
            proof.report.opError(op)
                << "counts the gradient of '" << source.getValue() << "' twice";
        Number &norm = scalars[op.getNorm()] =
            getSumSquares(op.getInputs(), /*isWhole=*/true);
        norm.expr = algebra.squareRoot(norm.expr);
        norm.narrow(Precision::f64());
        return true;
      })
      .Case([&](ClipOp op) {
        Number coefficient =
            clipCoefficient(algebra, scalar(op.getNorm()),
                            readMax(op.getMax(), op.getConstantMax()),
                            op.getEpsilon().convertToDouble());
        for (auto [input, output] :
             llvm::zip_equal(op.getInputs(), op.getOutputs()))
          readScale(output, input, coefficient);
        return true;
      })
      .Case([&](UpdateOp op) {
        isLogical = true;
        return readUpdate(op);
      })
      .Case([&](PrepareOp op) { return readPrepare(op); })
      .Case([&](UpdateBucketOp op) { return readUpdateBucket(op); })
      .Case([&](AssignOp op) { return readAssign(op), true; })
      .Case([&](ReadScheduleOp op) { return readSchedule(op); })
      .Case([&](AdvanceOp op) {
        if (op.getOutcome() != outcome)
          proof.report.opError(op)
              << "runs under another outcome than the step's";
        return advance(op.getRuleSymbol());
      })
      .Case([&](ReturnOp op) { return finish(op), true; })
      .Default([&](Operation *op) {
        proof.report.opError(op) << "is not known to the proof";
        return false;
      });
}

void StepReader::finish(ReturnOp op) {
  for (auto [name, value] :
       llvm::zip_equal(op.getNames().getAsRange<StringAttr>(), op.getValues()))
    semantics.results.push_back({name.getValue().str(), scalar(value)});
  // A skipped step has tokens, and a refused one any number of them.
  semantics.skippedResults = semantics.refusedResults = semantics.results;
  Substitution replace(algebra, [&](BaseRef base) -> Expr {
    bool isTokens = base->kind == BaseKind::symbol && base->own == 0 &&
                    base->name == kTokens;
    return isTokens ? getInput(algebra, 0, {0, true}) : nullptr;
  });
  for (auto &[name, number] : semantics.refusedResults)
    number.expr = replace.apply(number.expr);
  if (isLogical) {
    if (FlatSymbolRefAttr scale = step.getLossScaleAttr())
      advance(scale);
    llvm::for_each(schedules,
                   [&](FlatSymbolRefAttr schedule) { advance(schedule); });
    // By definition it is not finite if the square of a gradient is not, in
    // f64.
    Number square = makeSource(algebra, algebra.gradient(Epoch::all, 0));
    square.expr = algebra.multiply(square.expr, square.expr);
    square.narrow(Precision::f64());
    semantics.decidedBy =
        makeSum(algebra, square.expr, square.roundings).roundings;
    for (int i = 0; i < kNumSituations; ++i) {
      Situation situation = getSituation(i);
      semantics.outcomes[i] =
          situation.unequal && !semantics.takesUnequal &&
                  semantics.getNumRanks() > 1
              ? 3
          : situation.missing                                               ? 2
          : situation.noTokens                                              ? 5
          : !situation.nonfinite || step.getNonfinite() == Nonfinite::apply ? 0
          : step.getNonfinite() == Nonfinite::skip                          ? 1
                                                                            : 4;
    }
    return;
  }
  if (!outcome)
    proof.report.opError(step) << "has updates and no outcome: they would run "
                                  "with gradients that are missing";
}

std::optional<StepSemantics> StepReader::run() {
  if (!readMesh(proof, step, mesh, semantics))
    return std::nullopt;
  semantics.oneBackward = step.getOneBackward();
  semantics.isResumable = !semantics.oneBackward;
  if (step.saysBatches(mesh))
    semantics.batches = semantics.axes.getSet(step.getBatchAxes(mesh));
  semantics.dividesByTokens = step.dividesByTokens();
  semantics.takesUnequal = step.takesUnequalBackwards();
  semantics.lossScale = step.getLossScale().value_or("").str();
  for (BlockArgument argument : step.getBody().getArguments()) {
    InputSemantics input{getAxes(argument, PlacementKind::Partial),
                         argument == step.getTokens(),
                         StepOp::isMaxNorm(argument)};
    // Where gradients are divided by it no step is applied without any.
    Expr passed = input.isTokens && semantics.dividesByTokens
                      ? algebra.base({BaseKind::symbol, kTokens.str(),
                                      Epoch::all, input.over})
                      : getInput(algebra, argument.getArgNumber(), input);
    scalars[argument] = makeSource(algebra, passed);
    scalars[argument].narrow(Precision::f64());
    semantics.inputs.push_back(input);
  }
  auto module = step->getParentOfType<ModuleOp>();
  for (auto group : module.getOps<GroupOp>())
    for (auto member : group.getMembers().getAsRange<FlatSymbolRefAttr>())
      groupOf[member.getAttr()] = group;
  for (Operation &op : step.getBody().front())
    if (!read(op))
      return std::nullopt;
  noteAbsentGroups(module, semantics);
  return std::move(semantics);
}

std::optional<StepSemantics> prove::readStep(Proof &proof, StepOp step) {
  return StepReader(proof, step).run();
}
