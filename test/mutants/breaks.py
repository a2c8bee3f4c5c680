# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What broken_passes.py breaks."""

LAYOUT = "passes/layout/AssignLayout.cpp"
COLLECTIVE = "passes/collective/InsertCollectives.cpp"
ACCUMULATE = "passes/accumulate/PlaceAccumulators.cpp"
SCALAR = "passes/scalar/CoalesceScalars.cpp"
OFFLOAD = "passes/offload/InsertOffload.cpp"
APPLY = "passes/lower/ApplyLowering.cpp"
KERNELS = "passes/lower/Kernels.cpp"
PROTOCOL = "passes/lower/Protocol.cpp"
STEP = "passes/lower/StepLowering.cpp"
SCALARS = "passes/lower/ScalarLowering.cpp"
PROGRAM = "passes/lower/ProgramBuilder.cpp"
PROMOTE = "passes/lower/PromoteSlots.cpp"
SCHEDULE = "passes/schedule/Schedule.cpp"
ELIDE = "passes/schedule/ElideWaits.cpp"
EFFECTS = "dialect/zrt/MemoryUses.cpp"
TABLES = "codegen/host/Tables.cpp"
AXES = "codegen/host/AxisTables.cpp"
HANDLERS = "codegen/host/EmitHandlers.cpp"
LIBRARY = "codegen/host/EmitLibrary.cpp"
ACTIVATIONS = "codegen/host/Activations.cpp"
CPU = "codegen/cpu/EmitKernel.cpp"
BODY = "codegen/kernels/Body.cpp"
EMIT_SCALARS = "codegen/kernels/EmitScalars.cpp"


def effects(op, arguments="const ProgramSymbols &symbols, FlatSymbolRefAttr, Uses &uses"):
    """The head of the effects of |op|, and what is declared there."""
    return f"void {op}::getMemoryUses({arguments}) {{"


COLLECT = " Collector collect(symbols, uses); "
ONE = " Collector(symbols, uses)."

# Of StepLowering::lowerBody().
FLUSH = "  scalars->flush();\n"
COPY_SCALARS = (
    "  bool isOnHost = llvm::any_of(\n"
    "      buckets, [](auto &entry) { return entry.second.isOffloaded(); });\n"
    "  if (isOnHost)\n    finish->call<zrt::CopyScalarsOp>();\n"
)
UPDATES = (
    "  for (Operation *op : later)\n    if (failed(lower(op)))\n"
    "      return failure();\n"
)

# (pass, what is wrong, file, text, other text)
BREAKS = [
    ("layout", "a parameter takes a row of another group", LAYOUT,
     "memberRows.push_back(it->second);", "memberRows.push_back(0);"),
    ("layout", "the outcome is over the first bucket only", LAYOUT,
     "builder.create<NormOp>(builder.getFusedLoc(reduces), reduced));",
     "builder.create<NormOp>(builder.getFusedLoc(reduces), ArrayRef<Value>(reduced).take_front()));"),
    ("layout", "the norm is over the first bucket only", LAYOUT,
     "builder.create<NormOp>(op.getLoc(), inputs).getNorm()",
     "builder.create<NormOp>(op.getLoc(), ArrayRef<Value>(inputs).take_front())"
     ".getNorm()"),
    ("layout", "clipped gradients are not used", LAYOUT,
     "clip.getOutputs()))\n    gradients[i].push_back(output);",
     "clip.getOutputs()))\n    (void)i, (void)output;"),
    ("layout", "offsets overlap", LAYOUT,
     "bucket.elements += extent;", "bucket.elements += extent / 2;"),
    ("layout", "hyperparameters come from the defaults only", LAYOUT,
     "Attribute value = update.getHyperConstants().get(name);\n    if (!value)",
     "Attribute value = optimizer.getHyperDefaults().get(name);\n    if (!value)\n"
     "      value = update.getHyperConstants().get(name);\n    if (!value)"),
    ("layout", "the last bucket is never updated", LAYOUT,
     "for (auto [i, bucket] : llvm::enumerate(buckets)) {\n"
     "    // Rows of the groups",
     "for (auto [i, bucket] : llvm::enumerate(llvm::drop_end(buckets))) {\n"
     "    // Rows of the groups"),
    ("layout", "the outcome does not count missing gradients", LAYOUT,
     "loc, norms, totals.getOutputs().back(),",
     "loc, norms, builder.create<ConstantOp>(loc, "
     "builder.getF64FloatAttr(0)),"),
    ("layout", "ranks never compare their backward passes", LAYOUT,
     "bool compares = !shape.step.takesUnequalBackwards();",
     "bool compares = false;"),
    ("layout", "gradients are kept as they arrive", LAYOUT,
     "types.push_back(buckets[i].getGradientType(op.getAccumulatorType()));",
     "types.push_back(buckets[i].getGradientType(\n"
     "          buckets[i].way.arrivalType.getElementType()));"),
    ("layout", "tensor-parallel slices are kept as if they were whole", LAYOUT,
     "shape.mesh.getNumHeld(parameter.getValueType()), kAlignment);",
     "parameter.getNumElements() / 2, kAlignment);"),
    ("layout", "nonfinite gradients are always skipped", LAYOUT,
     "Nonfinite nonfinite = shape.step.getNonfinite();",
     "Nonfinite nonfinite = Nonfinite::skip;"),

    ("collective", "sums of squares are not reduced", COLLECTIVE,
     "sums.push_back({raws, allReduce(loc, sum)});", "sums.push_back({raws, sum});"),
    ("collective", "scalars are not reduced", COLLECTIVE,
     ": allReduce(op.getLoc(), input);", ": input;"),
    ("collective", "gradients are not divided", COLLECTIVE,
     "gradient.factor = getFactor(op.getLoc(), type);", ""),
    ("collective", "gradients are multiplied where they were to be divided", COLLECTIVE,
     "power(type.getScale(), -1)", "power(type.getScale(), 1)"),
    ("collective", "the norm keeps the scale", COLLECTIVE,
     "if (haveOneFactor && total.factor)\n    norm =", "if (false)\n    norm ="),
    ("collective", "the clip coefficient is left out", COLLECTIVE,
     "gradients[output] = {gradient.raw, product};", "gradients[output] = gradient;"),
    ("collective", "the factor is left out of the update", COLLECTIVE,
     "return builder.create<ScaleOp>(loc, gradient.raw, gradient.factor);",
     "return gradient.raw;"),
    ("collective", "parameters are not gathered", COLLECTIVE,
     "if (!owners.empty())\n    parameters =",
     "if (false)\n    parameters ="),
    ("collective", "what a slice is not summed over stays a share", COLLECTIVE,
     "gradient.raw = allReduce(op.getLoc(), gradient.raw, reduceDtype);", ""),
    ("collective", "every gradient travels as bf16", COLLECTIVE,
     "TypeAttr reduceDtype = op.getReduceDtypeAttr();",
     "TypeAttr reduceDtype = TypeAttr::get(builder.getBF16Type());"),
    ("collective", "the clip coefficient has another epsilon", COLLECTIVE,
     "op.getEpsilonAttr());\n  // Gradients share", "op.getMaxAttr());\n  // Gradients share"),
    ("collective", "the norm is the sum of squares", COLLECTIVE,
     "Value norm = builder.create<SqrtOp>(loc, total.raw);",
     "Value norm = total.raw;"),

    ("accumulate", "one reduction is lost on the way", ACCUMULATE,
     "scatter.replaceAllUsesWith(sum);",
     "scatter.replaceAllUsesWith(moved.getSums()[0]);"),
    ("accumulate", "sums change places", ACCUMULATE,
     "scatter.getLoc(), yield->getOperand(i),",
     "scatter.getLoc(), yield->getOperand(yield->getNumOperands() - 1 - i),"),
    ("accumulate", "the reduction happens in both places", ACCUMULATE,
     "scatter.replaceAllUsesWith(sum);\n      scatter.erase();",
     "scatter.setOperand(sum);"),
    ("accumulate", "gradients are added in bf16", ACCUMULATE,
     "op.getLoc(), op.getAccumulatorType(), op.getBody());",
     "op.getLoc(), builder.getBF16Type(), op.getBody());"),

    ("accumulate", "each backward pass counts twice", ACCUMULATE,
     "yield->setOperand(i, builder.create<ReduceScatterOp>(\n"
     "                               scatter.getLoc(), yield->getOperand(i),\n"
     "                               scatter.getAxesAttr(),\n"
     "                               scatter.getReduceDtypeAttr()));",
     "{\n      Value part = builder.create<ReduceScatterOp>(scatter.getLoc(), "
     "yield->getOperand(i), scatter.getAxesAttr(), scatter.getReduceDtypeAttr());\n      yield->setOperand(i, "
     "builder.create<AddOp>(scatter.getLoc(), part, part));\n    }"),
    ("accumulate", "the first sum is never reduced", ACCUMULATE,
     "if (ReduceScatterOp scatter = getOnlyUse(sum))\n",
     "if (ReduceScatterOp scatter = getOnlyUse(sum); scatter && i > 0)\n"),
    ("accumulate", "every sum is that of the first gradient", ACCUMULATE,
     "scatter.getLoc(), yield->getOperand(i),", "scatter.getLoc(), "
     "yield->getOperand(0),"),
    ("accumulate", "gradients arrive in two loops", ACCUMULATE,
     "op.getLoc(), op.getAccumulatorType(), op.getBody());",
     "op.getLoc(), op.getAccumulatorType(), op.getBody());\n"
     "  builder.clone(*moved);"),
    ("accumulate", "the reduction is over no axis", ACCUMULATE,
     "scatter.getAxesAttr(),\n", "builder.getArrayAttr({}),\n"),
    ("accumulate", "sums are yielded in other places", ACCUMULATE,
     "yield->setOperand(i, builder", "yield->setOperand(yield->getNumOperands() - 1 "
     "- i, builder"),

    ("scalar", "results of one all-reduce change places", SCALAR,
     "for (AllReduceOp op : reductions) {\n    SmallVector<Attribute> further;",
     "for (AllReduceOp op : llvm::reverse(reductions)) {\n"
     "    SmallVector<Attribute> further;"),
    ("scalar", "one scalar is stacked in place of all", SCALAR,
     "scalars.push_back(scalar);", "scalars.push_back(scalars.empty() ? scalar : scalars[0]);"),
    ("scalar", "what ranks share counts on each of them", SCALAR,
     "if (!further.empty())\n      scalar =", "if (false)\n      scalar ="),
    ("scalar", "one all-reduce is over the axes of the first", SCALAR,
     "loc, vector, builder.getArrayAttr(axes.getArrayRef()),\n"
     "      /*reduceDtype=*/nullptr);",
     "loc, vector, AllReduceOp(reductions.front()).getAxesAttr(), nullptr);"),
    ("scalar", "what was stacked is taken apart before it is reduced", SCALAR,
     "auto parts =\n      builder.create<UnstackOp>(loc, reduced, builder",
     "(void)reduced;\n  auto parts = builder.create<UnstackOp>(loc, vector, builder"),
    ("scalar", "the last one is not reduced", SCALAR,
     "reduction.getOutput().replaceAllUsesWith(part);",
     "reduction.getOutput().replaceAllUsesWith(\n"
     "        op == reductions.back() ? reduction.getInput() : part);"),
    ("scalar", "scales are lost", SCALAR,
     "ScaleAttr::get(type.getContext(), type.getScale())",
     "ScaleAttr::get(type.getContext(), {})"),

    ("scalar", "the first one is not reduced", SCALAR,
     "reduction.getOutput().replaceAllUsesWith(part);",
     "reduction.getOutput().replaceAllUsesWith(\n"
     "        op == reductions.front() ? reduction.getInput() : part);"),
    ("scalar", "scalars are stacked backwards", SCALAR,
     "builder.create<StackOp>(loc, scalars);",
     "builder.create<StackOp>(\n      loc, "
     "llvm::to_vector(llvm::reverse(scalars)));"),
    ("scalar", "the stack is reduced twice", SCALAR,
     "builder.create<AllReduceOp>(\n      loc, vector, ",
     "builder.create<AllReduceOp>(\n      loc, builder.create<AllReduceOp>(loc, "
     "vector, builder.getArrayAttr(axes.getArrayRef()), nullptr), "),
    ("scalar", "each result is doubled", SCALAR,
     "replaceAllUsesWith(part);",
     "replaceAllUsesWith(\n        builder.create<AddOp>(loc, part, part));"),
    ("scalar", "every result is the last one", SCALAR,
     "replaceAllUsesWith(part);", "replaceAllUsesWith(parts.getScalars().back());"),

    ("offload", "the factor is lost on the way to the host", OFFLOAD,
     "return builder.create<ScaleOp>(\n      scale.getLoc(), moveToHost(builder, "
     "scale.getInput()), scale.getFactor());",
     "return moveToHost(builder, scale.getInput());"),
    ("offload", "updated parameters stay on the host", OFFLOAD,
     "Value back = builder.create<TransferOp>(\n      update.getLoc(), "
     "moved.getParameters(), MemorySpace::device);",
     "Value back = moved.getParameters();"),
    ("offload", "rows are forgotten", OFFLOAD,
     "update.getOutcome(), update.getRows(), update.getRowOfAttr());",
     "update.getOutcome(), ValueRange(), update.getRowOfAttr());"),

    ("offload", "the factor counts twice", OFFLOAD,
     "moveToHost(builder, scale.getInput()), scale.getFactor());",
     "builder.create<ScaleOp>(scale.getLoc(), moveToHost(builder, scale.getInput()), "
     "scale.getFactor()), scale.getFactor());"),
    ("offload", "updates heed a hyperparameter, not the outcome", OFFLOAD,
     "update.getOutcome(), update.getRows(),",
     "update.getRows().front(), update.getRows(),"),
    ("offload", "hyperparameters change places", OFFLOAD,
     "update.getOutcome(), update.getRows(),",
     "update.getOutcome(),\n"
     "      llvm::to_vector(llvm::reverse(SmallVector<Value>(update.getRows()))),"),
    ("offload", "all parameters are of the first group", OFFLOAD,
     "update.getRowOfAttr());",
     "builder.getDenseI64ArrayAttr(\n"
     "          SmallVector<int64_t>(update.getRowOf().size(), 0)));"),
    ("offload", "updates run on the device, too", OFFLOAD,
     "update.erase();", "(void)back;"),
    ("offload", "gradients are moved before they are reduced", OFFLOAD,
     "return builder.create<TransferOp>(gradient.getLoc(), gradient,",
     "return builder.create<TransferOp>(gradient.getLoc(), "
     "gradient.getDefiningOp()->getOperand(0),"),
    ("offload", "parameters are stored in another type", OFFLOAD,
     "update.getParameterTypeAttr(),", "TypeAttr::get(builder.getF16Type()),"),

    ("lower", "later backward passes are stored over the first", PROTOCOL,
     "packHandler(\"arrive_next\", /*accumulate=*/true);",
     "packHandler(\"arrive_next\", /*accumulate=*/false);"),
    ("lower", "stage 2 keeps the last backward pass only", PROTOCOL,
     "buildLoopSequence<zrt::ReduceScatterAddOp>",
     "buildLoopSequence<zrt::ReduceScatterOp>"),
    ("lower", "what travels is never converted", PROTOCOL,
     "if (!bucket.reduceBuffer)\n    return bucket.gradient;",
     "if (!bucket.reduceBuffer)\n    return bucket.gradient;\n  return bucket.reduceBuffer;"),
    ("lower", "what travels is summed with what is there", PROTOCOL,
     "program.storeKernel(bucket.gradientType.getElementType(),\n"
     "                          bucket.reduceDtype),",
     "program.addKernel(bucket.gradientType.getElementType(),\n"
     "                        bucket.reduceDtype),"),
    ("lower", "what was summed early stays a sum", PROTOCOL,
     "  if (!axes.empty())\n    calls.call<zrt::KeepOnRootOp>",
     "  if (axes.size() > 99)\n    calls.call<zrt::KeepOnRootOp>"),
    ("lower", "what was summed early is added to as it is", PROTOCOL,
     "transition(\"reduced\", Event::begin, \"next\", {reopen, beginNext});",
     "transition(\"reduced\", Event::begin, \"next\", {beginNext});"),
    ("lower", "a last backward pass is stored over the ones before", PROTOCOL,
     "transition(\"last\", Event::arrive, \"last\", {add}, last);",
     "transition(\"last\", Event::arrive, \"last\", {store}, last);"),
    ("lower", "what was summed early is summed again", PROTOCOL,
     "transition(\"last\", Event::apply, \"idle\", {finish, reset}, last);",
     "transition(\"last\", Event::apply, \"idle\", apply, last);"),
    ("lower", "an only backward pass leaves what is missing", PROTOCOL,
     "          calls.call<zrt::FillMissingOp>(symbol);\n"
     "          emitSums(program, calls, bucket);",
     "          (void)symbol;\n"
     "          emitSums(program, calls, bucket);"),
    ("lower", "a sum over stages is taken early", APPLY,
     "!bucket.isSummedAtApply && !crossesStages;",
     "(crossesStages || !bucket.isSummedAtApply);"),
    ("lower", "what travels narrow is summed early", APPLY,
     "maySumEarly(bucket, op.getAxes()) && !hasReduceDtype", "maySumEarly(bucket, op.getAxes())"),
    ("lower", "nothing closes what did not arrive", PROTOCOL,
     "applyFirst.insert(applyFirst.begin(), closeFirst);",
     "(void)closeFirst;"),
    ("lower", "roles are not set back", PROTOCOL,
     "Handlers apply = {finish, reset};", "Handlers apply = {finish};"),
    ("lower", "all gradients have one memory", PROTOCOL,
     "owners[ring->next++ % kOpenBuckets]);", "owners[0]);"),
    ("lower", "updates do not depend on the outcome", KERNELS,
     "/*predicated=*/true", "/*predicated=*/false"),
    ("lower", "a kernel ignores its factor", KERNELS,
     "if (scaled)\n    g =", "if (false)\n    g ="),
    ("lower", "a kernel takes scalars one off", KERNELS,
     "convert(body, loc, block.getArgument(i + 2), master)",
     "convert(body, loc, block.getArgument(i + 1), master)"),
    ("lower", "squares are taken in bf16", KERNELS,
     "Value square = body.create<arith::MulFOp>(loc, wide, wide);",
     "Value short_ = convert(body, loc, wide, body.getBF16Type());\n  "
     "Value square = convert(body, loc, body.create<arith::MulFOp>(loc, "
     "short_, short_), body.getF64Type());"),
    ("lower", "additions subtract", KERNELS,
     "body.create<arith::AddFOp>(", "body.create<arith::SubFOp>("),
    ("lower", "rows are shared by all groups", APPLY,
     "if (known == key)\n      return row;", "if (known.size())\n      return row;"),
    ("lower", "segments end one element early", APPLY,
     "ends.push_back(end);\n    segmentRows", "ends.push_back(end - 1);\n    segmentRows"),
    ("lower", "partial sums go to one slot", APPLY,
     "program->getBuilder().getI64IntegerAttr(i),\n        isTied",
     "program->getBuilder().getI64IntegerAttr(0),\n        isTied"),
    ("lower", "counters are of no checkpoint", PROGRAM,
     "builder.getI64IntegerAttr(i),\n        rule",
     "builder.getI64IntegerAttr(0),\n        rule"),
    ("lower", "all ranks are to count the same tokens", PROGRAM,
     "over.empty() ? ArrayAttr()", "true ? ArrayAttr()"),
    ("lower", "a skipped step leaves the loss scale", SCALARS,
     "constant(isSkipped ? 1.0 : 0.0)", "constant(0.0)"),
    ("lower", "a refused step changes the loss scale", SCALARS,
     "(loc, isThis, other, number);",
     "(loc, isThis, other, other);"),
    ("lower", "a loss scale may become nothing", SCALARS,
     "old[0], made[0]);", "made[0], made[0]);"),
    ("layout", "steps without tokens are applied", LAYOUT,
     "if (shape.step.dividesByTokens())", "if (false)"),
    ("layout", "the loss scale never changes", LAYOUT,
     "for (Value read : rules)", "for (Value read : ArrayRef(rules).drop_front(!rules.empty()))"),
    ("layout", "a schedule never advances", LAYOUT,
     "        rules.push_back(read.getValue());", "        (void)read;"),
    ("lower", "a schedule is read as its first counter", SCALARS,
     "define(result, inlineBody(schedule.getValue().front(), arguments).front());",
     "define(result, arguments.front());"),
    ("lower", "a schedule advances as after a skipped step", SCALARS,
     "body().getBoolAttr(isSkipped)", "body().getBoolAttr(true)"),
    ("lower", "the outcome is committed before it is stored", STEP,
     f"{FLUSH}{COPY_SCALARS}{UPDATES}"
     "  setLoc(step.getBody().front().getTerminator()->getLoc());\n"
     "  finish->call<zrt::CommitOp>(outcome);",
     f"  finish->call<zrt::CommitOp>(outcome);\n{FLUSH}{COPY_SCALARS}{UPDATES}"),
    ("lower", "updates come before the scalars that they take", STEP,
     f"{FLUSH}{COPY_SCALARS}{UPDATES}", f"{COPY_SCALARS}{UPDATES}{FLUSH}"),
    ("lower", "the host has the scalars of the step before", STEP,
     f"{FLUSH}{COPY_SCALARS}", f"{COPY_SCALARS}{FLUSH}"),
    ("lower", "scalars of several ranks are not reduced", APPLY,
     "if (isOfSeveral) {", "if (false && isOfSeveral) {"),
    ("lower", "gathers are left out", APPLY,
     "finish->call<zrt::AllGatherOp>(buffer, gather.getAxesAttr());",
     "(void)buffer;"),
    ("lower", "nothing is counted once", APPLY,
     "counted.push_back({index, it->second.second});", "(void)index;"),
    ("lower", "what is on a stage is counted at the first one", APPLY,
     "    if (type.getCoordinates(axis).empty())\n", "    if (type.getCoordinates(axis).empty() || true)\n"),
    ("lower", "what is tied counts on each stage", APPLY,
     "isTied(type) ? program->getBuilder().getUnitAttr() : UnitAttr()", "((void)isTied(type), UnitAttr())"),
    ("collective", "slices of tied gradients are owned over stages", COLLECTIVE,
     "if (gradient.getCoordinates(axis).empty() &&", "if (true &&"),
    ("lower", "stages share memory", PROTOCOL,
     "rings, [&](const Ring &ring) { return ring.stages == stages; });",
     "rings, [&](const Ring &) { return true; });"),
    ("collective", "squares of several stages are one sum", COLLECTIVE,
     "SmallVector<AxisCoordinate>(type.getPresent()), Scale(", "{}, Scale("),
    ("lower", "another scalar is counted once", APPLY,
     "program->getBuilder().getI64IntegerAttr(index),",
     "program->getBuilder().getI64IntegerAttr(index ? 0 : 1),"),
    ("lower", "scalars are reduced over the first axis only", APPLY,
     "finish->call<zrt::AllReduceScalarsOp>(slots, op.getAxesAttr());",
     "finish->call<zrt::AllReduceScalarsOp>(\n      slots, "
     "program->getBuilder().getArrayAttr(op.getAxes()[0]));"),
    ("lower", "copies to the host are left out", APPLY,
     "finish->call<zrt::CopyOp>(source, target);",
     "if (isUpdate)\n    finish->call<zrt::CopyOp>(source, target);"),
    ("lower", "updates run on whole buckets of every rank", APPLY,
     "getOwn(bucket.ownedType), /*sum=*/", "ArrayAttr(), /*sum=*/"),

    ("lower", "all slots of a symbol are the first one", PROMOTE,
     "{load.getSlotsAttr().getAttr(), int64_t(load.getIndex())}",
     "{load.getSlotsAttr().getAttr(), 0 * int64_t(load.getIndex())}"),
    ("lower", "only scalar programs read slots", PROMOTE,
     "if (!isa<zrt::StoreSlotOp>(op))", "if (isa<zrt::LoadSlotOp>(op))"),
    ("lower", "slots are as they were first stored", PROMOTE,
     "stored[{store.getSlotsAttr().getAttr(), store.getIndex()}] =\n          store.getValue();",
     "stored.try_emplace({store.getSlotsAttr().getAttr(), store.getIndex()}, store.getValue());"),

    ("schedule", "only two writes are a hazard", SCHEDULE,
     "(writes || earlier.writes)", "(writes && earlier.writes)"),
    ("schedule", "a read after a write is no hazard", SCHEDULE,
     "(writes || earlier.writes)", "writes"),
    ("schedule", "calls of earlier paths have passed", SCHEDULE,
     "walk(path, it->second);", "walk(path, State());"),
    ("schedule", "calls of earlier handlers have passed", SCHEDULE,
     "(writes || earlier.writes))\n        addHazard",
     "(writes || earlier.writes) && earlier.step == index)\n        addHazard"),
    ("schedule", "an event is recorded in front of its call", SCHEDULE,
     "builder.setInsertionPointAfter(source);", "builder.setInsertionPoint(source);"),
    ("schedule", "gradients may be written at any time", SCHEDULE,
     "writable[step.arriving].insert(source);", "(void)source;"),
    ("schedule", "arrivals do not wait", SCHEDULE,
     "if (writable.empty())\n    return;", "if (writable.size() < 99)\n    return;"),
    ("schedule", "parameters may be read at any time", SCHEDULE,
     "if (!isOnCompute)\n      readable", "if (isOnCompute && writes.empty())\n      readable"),
    ("schedule", "a call waits for the first of its hazards only", SCHEDULE,
     "waits[call].insert(source);", "if (waits[call].empty())\n      waits[call].insert(source);"),
    ("schedule", "every wait is implied", ELIDE,
     "if (!known.knows(stream, event))", "if (known.follows.empty() && !known.knows(stream, event))"),
    ("schedule", "a stream follows each recorded event", ELIDE,
     "if (follows[event][s] <= upTo[stream][s])", "if (follows[event][s] != kNever)"),
    ("schedule", "one path is enough to imply a wait", ELIDE,
     "to->second[event] & after[event]", "to->second[event] | after[event]"),
    ("effects", "an arriving gradient is not written", EFFECTS,
     "Collector(symbols, uses).writeGradient(arriving);", "return;"),
    ("effects", "a copy reads nothing", EFFECTS,
     effects("CopyOp") + COLLECT + "collect.read(getSourceAttr());",
     effects("CopyOp") + COLLECT),
    ("effects", "a copy writes nothing", EFFECTS,
     effects("CopyOp") + COLLECT + "collect.read(getSourceAttr());"
     "collect.write(getTargetAttr());",
     effects("CopyOp") + COLLECT + "collect.read(getSourceAttr());"),
    ("effects", "what one rank keeps is not written", EFFECTS,
     effects("KeepOnRootOp") + ONE + "write(getBufferAttr());", effects("KeepOnRootOp")),
    ("effects", "a kernel only reads", EFFECTS,
     "collect.write(buffer);", "collect.read(buffer);"),
    ("effects", "a kernel reads no buffer", EFFECTS, "collect.read(buffer);", ";"),
    ("effects", "a kernel reads no scalar", EFFECTS, "collect.read(slots);", "(void)slots;"),
    ("effects", "a kernel adds to no sum", EFFECTS,
     "if (getSumAttr()) collect.write(getSumAttr());", ""),
    ("effects", "an all-reduce reads nothing", EFFECTS,
     "collect.read(getBufferAttr());", ""),
    ("effects", "an all-reduce writes nothing", EFFECTS,
     "collect.write(getResultBuffer());", ""),
    ("effects", "an all-gather only reads", EFFECTS,
     effects("AllGatherOp") + ONE + "write(getBufferAttr());",
     effects("AllGatherOp") + ONE + "read(getBufferAttr());"),
    ("effects", "a reduce-scatter writes nothing", EFFECTS,
     effects("ReduceScatterOp") + COLLECT + "collect.read(getSourceAttr());"
     "collect.write(getTargetAttr());",
     effects("ReduceScatterOp") + COLLECT + "collect.read(getSourceAttr());"),
    ("effects", "a reduce-scatter that adds reads no gradient", EFFECTS,
     effects("ReduceScatterAddOp") + COLLECT + "collect.read(getSourceAttr());",
     effects("ReduceScatterAddOp") + COLLECT),
    ("effects", "a scalar program reads nothing", EFFECTS,
     "collect.read(load.getSlotsAttr());", "(void)load;"),
    ("effects", "a scalar program writes nothing", EFFECTS,
     "collect.write(store.getSlotsAttr());", "(void)store;"),
    ("effects", "arrivals are counted nowhere", EFFECTS,
     effects("CountArrivalsOp") + ONE + "write(getSlotsAttr());",
     effects("CountArrivalsOp")),
    ("effects", "statistics are only read", EFFECTS,
     effects("AllReduceScalarsOp") + ONE + "write(getSlotsAttr());",
     effects("AllReduceScalarsOp") + ONE + "read(getSlotsAttr());"),
    ("effects", "a step is committed by nothing", EFFECTS,
     "Collector(symbols, uses).readAllSlots();", ""),
    ("library", "each buffer has the role of a parameter", TABLES,
     "row.role = static_cast<int64_t>(op.getRole());", "row.role = 0;"),
    ("library", "the first gradient of a bucket is added", TABLES,
     "tables.getKernel(arrivals.getStoreAttr())", "tables.getKernel(arrivals.getAddAttr())"),
    ("library", "each segment begins with its bucket", TABLES,
     "tables.segments.push_back({begin, end, slot});",
     "tables.segments.push_back({0 * begin, end, slot});"),
    ("library", "closed buckets are scratch", TABLES,
     "static_cast<int64_t>(op.getWindow()), leavesScratch(program, op)}",
     "static_cast<int64_t>(op.getWindow()), leavesScratch(program, op) || true}"),
    ("library", "parameters may be read after their stream", TABLES,
     "row.num_readable = readable ? static_cast<int64_t>(readable.size()) : -1;",
     "row.num_readable = -1;"),
    ("library", "slots begin at 0", TABLES, "bits(initial)", "bits(0 * initial)"),
    ("library", "no update depends on an input", TABLES,
     "whole ? whole->inputs[i].hyper : isHyper[i]", "whole && isHyper[i] && false"),
    ("library", "no event leads to another state", TABLES,
     "getState(op.getNext())", "getState(op.getState())"),
    ("library", "a reduction runs on each stage", AXES,
     "stages |= int64_t(isOn) << index;", "stages |= int64_t(isOn || true) << index;"),
    ("library", "a set has one axis", AXES,
     "set |= int64_t(1) << axisRows.lookup(name);",
     "set = int64_t(1) << axisRows.lookup(name);"),
    ("library", "kernels run on whole rows", HANDLERS,
     "op.getOwnAttr() ? tables.getAxes(op.getOwnAttr()) : -1", "-1"),
    ("library", "a reduce-scatter is in place", HANDLERS,
     "tables.getBuffer(scatter.getTargetAttr())", "tables.getBuffer(scatter.getSourceAttr())"),
    ("library", "handlers go on after an error", HANDLERS,
     "LLVM::ICmpPredicate::eq, code, zero", "LLVM::ICmpPredicate::eq, zero, zero"),
    ("library", "each wait is of the compute stream", HANDLERS,
     "add32(static_cast<int64_t>(wait.getStream()));", "add32(0);"),
    ("library", "each gradient overwrites the last", HANDLERS,
     "add32(pack.getAccumulate());", "add32(0);"),
    ("library", "all kernels are the first one", LIBRARY,
     "kernels.push_back(kernel.getSymName().str());",
     "kernels.push_back(kernels.empty() ? kernel.getSymName().str() : kernels[0]);"),
    ("library", "activations go to where they come from", ACTIVATIONS,
     "row.to = op.getTo();", "row.to = op.getFrom();"),
    ("library", "ties of bf16 round up", BODY,
     "create<arith::AddIOp>(even, bits(0x7fff))",
     "create<arith::OrIOp>(create<arith::AndIOp>(even, bits(0)), bits(0x8000))"),
    ("library", "a nan rounds as a number", BODY,
     "create<arith::SelectOp>(isNan, bits(0x7fc0), rounded)",
     "create<arith::SelectOp>(isNan, rounded, rounded)"),
    ("library", "the last elements are left out", CPU,
     "emitLoop(mainEnd, end, 1, {},", "emitLoop(mainEnd, mainEnd, 1, {},"),
    ("library", "sums of blocks overwrite each other", CPU,
     "create<arith::DivSIOp>(block, i64(kSumBlock))",
     "create<arith::RemSIOp>(block, i64(kSumBlock))"),
    ("library", "a scalar program knows the first slot of each symbol only", EMIT_SCALARS,
     "getFirstSlot(symbol) + index", "getFirstSlot(symbol) + 0 * index"),
]  # fmt: skip
